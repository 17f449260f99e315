"""One DICOM file: the few tags that are let in, why it is held back, and its pixels as PNG with every bit.

Only tags on a list are read, and only values that the standard defines for them; nothing else of a file is known here,
so nothing else can get out. Run by `relook.apart`, in a process of its own, because decoders crash on broken files.
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.collection import VIEWS
from relook.errors import BadInput
from relook.pseudonyms import SiteKey

if TYPE_CHECKING:
    from pydicom import FileDataset

MARK = b"DICM"
"""What stands in every DICOM file, after 128 bytes that may hold anything."""

LARGEST = 512 * 2**20
"""Bytes of a file, packed or unpacked, that are looked at."""

PIXELS = 40_000_000
"""Samples of all images of a file that are decoded; the largest mammograms have 30 million."""

_RUNS = 3
"""What zlib calls to pack runs of one value only, such as black borders (Z_RLE)."""

_TOGETHER = 1 << 20
"""So many pixels are turned at once."""

RELEASABLE = ("burned-in", "secondary-capture", "ultrasound", "head")
"""Why a file may be held back: names may stand in its picture, or its picture may show a face."""


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORDS: Mapping[str, frozenset[str]] = {
    "Modality": _words_of("CR CT DX ECG ES GM IO IVOCT IVUS MG MR NM OCT OP OPT OT PT PX RF RG SC SM TG US VL XA XC"),
    "PhotometricInterpretation": frozenset(
        ("MONOCHROME1", "MONOCHROME2", "RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT", "PALETTE COLOR")
    ),
    "ViewPosition": _words_of(
        "AP PA LL RL RLD LLD RLO LLO RAO LAO RPO LPO AX AXIAL LAT LATERAL OBL OBLIQUE TAN CC CCA FB SIO ML MLO LM LMO "
        "XCC XCCL XCCM ISO SPINE"
    ),
    "Laterality": frozenset("RLUB"),
    "ImageLaterality": frozenset("RLUB"),
    "BodyPartExamined": _words_of(
        "ABDOMEN ABDOMENPELVIS ANKLE AORTA ARM AXILLA BACK BLADDER BRAIN BREAST BRONCHUS BUTTOCK CALCANEUS CALF "
        "CARDIAC CAROTID CEREBELLUM CERVIX CHEEK CHEST CHESTABDOMEN CHESTABDPELVIS CHESTABDOMENPELVIS CLAVICLE "
        "COCCYX COLON CSPINE CTSPINE DUODENUM EAR ELBOW ESOPHAGUS EXTREMITY EYE EYELID FACE FEMUR FINGER FOOT "
        "FOREARM GALLBLADDER HAND HEAD HEADNECK HEART HIP HUMERUS ILEUM ILIUM JAW JAWREGION JEJUNUM KIDNEY KNEE "
        "LARYNX LEG LIVER LSPINE LSSPINE LUNG MANDIBLE MAXILLA MEDIASTINUM MOUTH NECK NECKCHEST NECKCHESTABDOMEN "
        "NOSE ORBIT OVARY PANCREAS PAROTID PATELLA PELVIS PENIS PHARYNX PROSTATE RADIUS RECTUM RIB RIBS SCALP "
        "SCAPULA SCLERA SCROTUM SELLA SHOULDER SKULL SPINE SPLEEN SSPINE SINUS STERNUM STOMACH TESTIS THIGH THUMB "
        "THYMUS THYROID TIBIA TLSPINE TMJ TOE TONGUE TRACHEA TSPINE ULNA UPPERARM URETER URETHRA UTERUS VAGINA "
        "VULVA WHOLEBODY WRIST"
    ),
}
"""Tags of words, with the words that the standard defines for them: a name in their place is not let in."""

_NUMBERS = ("WindowCenter", "WindowWidth", "PixelSpacing", "ImagerPixelSpacing")
"""Tags of numbers that are let in as they are."""

_NEEDED = ("Rows", "Columns", "SamplesPerPixel", "BitsAllocated", "BitsStored")
_PALETTE = [
    f"{color}PaletteColorLookupTable{part}" for color in ("Red", "Green", "Blue") for part in ("Descriptor", "Data")
]
_PIXELS = ("PlanarConfiguration", "PixelData", "ExtendedOffsetTable", "ExtendedOffsetTableLengths", *_PALETTE)
_KNOWN_BY = ("SOPInstanceUID", "PatientID", "IssuerOfPatientID")
_HEADER = (
    *(*_WORDS, *_NUMBERS, *_NEEDED, *_KNOWN_BY, "RescaleSlope", "RescaleIntercept"),
    *("HighBit", "PixelRepresentation", "NumberOfFrames", "SOPClassUID", "BurnedInAnnotation"),
)

_HEADS = _words_of("BRAIN CHEEK EAR EYE EYELID FACE HEAD HEADNECK JAW JAWREGION NOSE ORBIT SCALP SINUS SKULL")
_ULTRASOUND = re.compile(r"1\.2\.840\.10008\.5\.1\.4\.1\.1\.(?:3|3\.1|6|6\.1|6\.2)")
_SECONDARY = re.compile(r"1\.2\.840\.10008\.5\.1\.4\.1\.1\.7(?:\.[1-4])?")


class Header(msgspec.Struct, frozen=True):
    """What is let in of a file beside its pixels: names that only the site's key leads back, and values by column.

    `held` are reasons to leave it out, of `RELEASABLE`; `unsure` says that the file does not tell whether text is
    burned in; `dropped` counts values of allowed tags that the standard does not define.
    """

    id: str
    group: str
    known_patient: bool
    frames: int
    values: dict[str, str]
    held: tuple[str, ...] = ()
    unsure: bool = False
    dropped: int = 0


def is_dicom(path: Path) -> bool:
    """Say whether a file has the mark of DICOM."""
    with path.open("rb") as file:
        return file.read(132)[128:] == MARK


def header(path: Path, key: SiteKey) -> Header | None:
    """Return what is let in of a file, or None where it holds no image: a report, or a DICOMDIR."""
    found = _read(path, _HEADER)
    if not any(name in found for name in ("PhotometricInterpretation", *_NEEDED)):
        return None
    frames = _checked(path, found)
    words, dropped = _known(found)
    instance, patient = _text(found.get("SOPInstanceUID")), _text(found.get("PatientID"))
    name = key.pseudonym("item", instance) if instance else key.pseudonym("file", _digest(path))
    issuer = _text(found.get("IssuerOfPatientID"))
    burned = _text(found.get("BurnedInAnnotation")).upper()
    return Header(
        id=name,
        group=key.pseudonym("patient", issuer, patient) if patient else key.pseudonym("patient of", name),
        known_patient=bool(patient),
        frames=frames,
        values=words | _mapping(found),
        held=_reasons(found, words, burned=burned),
        unsure=not burned,
        dropped=dropped,
    )


def write(path: Path, folder: Path, *, names: Sequence[str]) -> None:
    """Write the images of a file into a folder as PNG, a name an image."""
    from PIL import Image

    found = _read(path, (*_HEADER, *_PIXELS))
    frames = _checked(path, found)
    if "PixelData" not in found:
        raise BadInput(f"{path}: pixels were needed, but it has none; leave the file out")
    for name, pixels in zip(names, _frames(path, found, frames=frames), strict=True):
        # Noise of a detector repeats nowhere: to look for repeats takes fifteen times as long and saves 1 %.
        Image.fromarray(pixels).save(folder / name, "PNG", compress_type=_RUNS)


def _read(path: Path, tags: Sequence[str]) -> FileDataset:
    from pydicom import dcmread

    if path.stat().st_size > LARGEST:
        raise BadInput(f"{path}: at most {LARGEST >> 20} MB were needed, but the file is larger; leave it out")
    _check_deflated(path)
    return dcmread(path, specific_tags=list(tags))


def _check_deflated(path: Path) -> None:
    """Refuse a file that unpacks to more than what is looked at, before anything else unpacks it."""
    from pydicom.filereader import read_file_meta_info
    from pydicom.uid import DeflatedExplicitVRLittleEndian

    meta = read_file_meta_info(path)
    if meta.get("TransferSyntaxUID") != DeflatedExplicitVRLittleEndian:
        return
    unpacked, unpacker = 0, zlib.decompressobj(-zlib.MAX_WBITS)
    with path.open("rb") as file:
        # The length of this group is told by its first element, which ends at byte 144.
        file.seek(144 + int(meta.FileMetaInformationGroupLength))
        while block := unpacker.unconsumed_tail or file.read(1 << 16):
            unpacked += len(unpacker.decompress(block, 1 << 20))
            if unpacked > LARGEST:
                raise BadInput(
                    f"{path}: at most {LARGEST >> 20} MB were needed, but it unpacks to more; leave the file out"
                )


def _checked(path: Path, found: FileDataset) -> int:
    """Refuse what cannot be decoded with every bit, and return the number of images."""
    absent = [name for name in _NEEDED if not isinstance(found.get(name), int)]
    if absent or _text(found.get("PhotometricInterpretation")) not in _WORDS["PhotometricInterpretation"]:
        raise BadInput(
            f"{path}: an image was needed, but its {absent[0] if absent else 'PhotometricInterpretation'} is missing "
            "or unknown; leave the file out"
        )
    frames = int(found.get("NumberOfFrames") or 1)
    if not 1 <= frames <= VIEWS:
        raise BadInput(
            f"{path}: 1 to {VIEWS} images were needed, but it holds {frames}; films and volumes are not taken, "
            "export the image that is to be judged"
        )
    rows, columns, samples, allocated, bits = (int(found[name].value) for name in _NEEDED)
    if not (rows > 0 and columns > 0 and 0 < rows * columns * samples * frames <= PIXELS):
        raise BadInput(
            f"{path}: at most {PIXELS // 10**6} million pixels were needed, but it says {rows} x {columns}, {samples} "
            f"samples, {frames} times; leave the file out"
        )
    high = int(found.get("HighBit", bits - 1))
    if samples not in (1, 3) or not 1 <= bits <= (16 if samples == 1 else 8) or not bits - 1 <= high < allocated:
        raise BadInput(
            f"{path}: up to 16 bits of grey, or 8 of three colours, were needed, but it says {samples} samples of "
            f"{bits} bits up to bit {high} of {allocated}; export it again"
        )
    _check_packing(path, found, bits=bits)
    return frames


def _check_packing(path: Path, found: FileDataset, *, bits: int) -> None:
    from pydicom.uid import JPEGExtended12Bit

    syntax = found.file_meta.TransferSyntaxUID
    if not _decodable(syntax) or (syntax == JPEGExtended12Bit and bits > 8):
        raise BadInput(f"{path}: a known way of packing pixels was needed, but {syntax.name} came; export it unpacked")


def _decodable(syntax: Any) -> bool:
    from pydicom.pixels.decoders.base import get_decoder

    try:
        return bool(get_decoder(syntax).is_available)
    except NotImplementedError:
        return False


def _reasons(found: FileDataset, words: Mapping[str, str], *, burned: str) -> tuple[str, ...]:
    kind, modality = _text(found.get("SOPClassUID")), words.get("modality", "")
    part = words.get("body_part_examined", "")
    held = {
        "burned-in": burned not in ("", "NO"),
        "secondary-capture": bool(_SECONDARY.fullmatch(kind)) or modality == "SC",
        "ultrasound": bool(_ULTRASOUND.match(kind)) or modality in ("US", "IVUS"),
        "head": part in _HEADS and modality in ("CT", "MR", "PT"),
    }
    return tuple(reason for reason in RELEASABLE if held[reason])


def _known(found: FileDataset) -> tuple[dict[str, str], int]:
    """Return what the allowed tags say in words and numbers, and how many of them say what may not be let in."""
    words = {name: text for name in _WORDS if (text := _text(found.get(name)).upper()) in _WORDS[name]}
    numbers = {name: text for name in _NUMBERS if (text := _numbers(_value(found, name)))}
    said = [name for name in (*_WORDS, *_NUMBERS) if name in found and found.get_item(name).value]
    known = words | numbers
    return {_column(name): text for name, text in known.items()}, len(said) - len(known)


def _value(found: FileDataset, name: str) -> Any:
    try:
        return found.get(name)
    except ValueError:
        return None


def _column(tag: str) -> str:
    """Return a tag's name as that of a column: `window_center`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tag).lower()


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip(" \0")


def _numbers(value: Any) -> str:
    """Return one or several numbers as DICOM joins them, and nothing where one is none."""
    several = value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]
    try:
        numbers = [float(part) for part in several if part is not None]
    except (TypeError, ValueError):
        return ""
    # What is meant as a number has six digits at most; a longer one may be somebody's.
    told = [f"{number:.6g}" for number in numbers if math.isfinite(number)]
    return "\\".join(told) if len(told) == len(numbers) <= 8 else ""


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# From stored values to pixels. Both are whole numbers, and each leads back to the other.


def _mapping(found: FileDataset) -> dict[str, str]:
    """Return how pixels of the PNG lead to the units of the modality: slope x pixel + intercept."""
    bits = int(found.BitsStored)
    told = {"bits_stored": str(bits)}
    if not _text(found.get("PhotometricInterpretation")).startswith("MONOCHROME"):
        return told
    # Empty is as good as absent; what is there must be a number.
    slope = float(1 if found.get("RescaleSlope") in (None, "") else found.RescaleSlope)
    intercept = float(found.get("RescaleIntercept") or 0)
    if _signed(found):
        intercept -= slope * 2 ** (bits - 1)
    if _inverted(found):
        slope, intercept = -slope, intercept + slope * (2**bits - 1)
    slope /= 2 ** (_depth(bits) - bits)
    return told | {
        "signed": str(int(_signed(found))),
        "rescale_slope": repr(slope),
        "rescale_intercept": repr(intercept),
    }


def _signed(found: FileDataset) -> bool:
    return int(found.get("PixelRepresentation") or 0) == 1


def _inverted(found: FileDataset) -> bool:
    """Say whether small values are bright; pixels of the PNG are bright where they are large."""
    return _text(found.get("PhotometricInterpretation")) == "MONOCHROME1"


def _depth(bits: int) -> int:
    return 8 if bits <= 8 else 16


def _frames(path: Path, found: FileDataset, *, frames: int) -> Iterator[NDArray[Any]]:
    """Yield the images, grey ones with 8 or 16 bits, coloured ones as red, green and blue."""
    from pydicom.pixels.decoders.base import get_decoder
    from pydicom.pixels.processing import apply_color_lut
    from pydicom.uid import RLELossless

    syntax = found.file_meta.TransferSyntaxUID
    coded = syntax.is_encapsulated and syntax != RLELossless
    if coded:
        _check_ends(path, found, frames=frames)
    decoder = get_decoder(syntax)
    plugin = "gdcm" if "gdcm" in decoder.available_plugins else ""
    how: dict[str, Any] = {"correct_unused_bits": coded}
    for index in range(frames):
        stored, _ = decoder.as_array(found, index=index, decoding_plugin=plugin, **how)
        if _text(found.PhotometricInterpretation) == "PALETTE COLOR":
            colors = apply_color_lut(stored, found)
            yield np.ascontiguousarray(colors >> 8 if colors.dtype.itemsize > 1 else colors).astype(np.uint8)
        elif stored.ndim == 3 and stored.max() < 256:
            yield np.ascontiguousarray(stored.astype(np.uint8))
        else:
            yield _grey(path, found, stored=stored, coded=coded)


def _check_ends(path: Path, found: FileDataset, *, frames: int) -> None:
    """Refuse an image that was cut off: a decoder would fill the rest with grey and say nothing."""
    from pydicom.encaps import generate_frames

    for frame in generate_frames(found.PixelData, number_of_frames=frames):
        if not frame.rstrip(b"\0\xff").endswith(b"\xff\xd9"):
            raise BadInput(f"{path}: a whole image was needed, but its end is missing; export the file again")


def _cleared(found: FileDataset, stored: NDArray[Any]) -> NDArray[Any]:
    """Return stored values without the bits that are not theirs, in which overlays may lie."""
    bits = int(found.BitsStored)
    values = stored.astype(np.int32)
    values >>= int(found.get("HighBit", bits - 1)) + 1 - bits
    values &= 2**bits - 1
    if _signed(found):
        values ^= 2 ** (bits - 1)
        values -= 2 ** (bits - 1)
    return values


def _grey(path: Path, found: FileDataset, *, stored: NDArray[Any], coded: bool) -> NDArray[Any]:
    """Return stored values as pixels from 0 up, some rows at a time, so that the memory holds few of them twice."""
    bits, depth = int(found.BitsStored), _depth(int(found.BitsStored))
    if stored.ndim != 2:
        raise BadInput(f"{path}: one image was needed, but pixels of shape {stored.shape} came; export the file again")
    pixels = np.empty(stored.shape, np.uint8 if depth == 8 else np.uint16)
    rows = max(_TOGETHER // stored.shape[1], 1)
    for first in range(0, len(stored), rows):
        values = (
            stored[first : first + rows].astype(np.int32) if coded else _cleared(found, stored[first : first + rows])
        )
        values += 2 ** (bits - 1) if _signed(found) else 0
        if values.min() < 0 or values.max() >= 2**bits:
            raise BadInput(
                f"{path}: values of {bits} bits were needed, but they go from {stored.min()} to {stored.max()}; "
                "export the file again"
            )
        if _inverted(found):
            np.subtract(2**bits - 1, values, out=values)
        pixels[first : first + rows] = values << (depth - bits)
    return pixels
