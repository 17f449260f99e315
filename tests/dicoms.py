"""Small DICOM files for tests: grey, coloured, packed in every way that is read, and full of planted names."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import (
    UID,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    RLELossless,
)

DX = UID("1.2.840.10008.5.1.4.1.1.1.1")
UNPACKED = {
    "implicit": ImplicitVRLittleEndian,
    "explicit": ExplicitVRLittleEndian,
    "big": ExplicitVRBigEndian,
    "deflated": DeflatedExplicitVRLittleEndian,
    "rle": RLELossless,
}
BY_GDCM = {
    "jpeg": "JPEGBaselineProcess1",
    "jpeg lossless": "JPEGLosslessProcess14_1",
    "jpeg-ls": "JPEGLSLossless",
    "jpeg 2000": "JPEG2000Lossless",
}


def picture(bits: int = 12, *, rows: int = 24, columns: int = 32, seed: int = 0) -> NDArray[Any]:
    """Return smooth values with noise that reach both ends of what so many bits hold."""
    ramp = np.linspace(0, 2**bits - 1, rows * columns).reshape(rows, columns)
    noise = np.random.default_rng(seed).integers(-2, 3, (rows, columns))
    values = np.clip(ramp.round().astype(np.int64) + noise, 0, 2**bits - 1)
    values[0, 0], values[-1, -1] = 0, 2**bits - 1
    return values


def radiograph(values: NDArray[Any], *, bits: int = 12, name: str = "1", **tags: object) -> FileDataset:
    """Return a radiograph of one frame, or of several that lie along the first axis."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = DX
    meta.MediaStorageSOPInstanceUID = UID(f"1.2.3.{name}")
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    made = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    made.SOPClassUID, made.SOPInstanceUID = DX, f"1.2.3.{name}"
    made.PatientID, made.Modality, made.BurnedInAnnotation = f"P{name}", "DX", "NO"
    made.Rows, made.Columns = values.shape[-2:]
    made.SamplesPerPixel, made.PhotometricInterpretation = 1, "MONOCHROME2"
    made.BitsAllocated, made.BitsStored, made.HighBit = (8 if bits <= 8 else 16), bits, bits - 1
    made.PixelRepresentation = int(values.min() < 0)
    made.PixelData = values.astype(f"<i{made.BitsAllocated // 8}").tobytes()
    made["PixelData"].VR = "OW"
    for tag, value in tags.items():
        _set(made, tag, value)
    return made


def _set(made: Dataset, tag: str, value: object) -> None:
    """Set a tag to anything, as real files hold anything."""
    made.add(pydicom.DataElement(tag, pydicom.datadict.dictionary_VR(tag), value, validation_mode=0))


def colored(pixels: NDArray[np.uint8], *, name: str = "1", **tags: object) -> FileDataset:
    """Return a picture in red, green and blue."""
    made = radiograph(pixels[..., 0].astype(np.int64), bits=8, name=name)
    made.SamplesPerPixel, made.PhotometricInterpretation, made.PlanarConfiguration = 3, "RGB", 0
    made.PixelData = pixels.tobytes()
    for tag, value in tags.items():
        _set(made, tag, value)
    return made


def saved(made: FileDataset, path: Path, syntax: str = "explicit") -> Path:
    """Write a file, packed in one of the ways of `UNPACKED` or `BY_GDCM`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if syntax in BY_GDCM:
        return _packed(saved(made, path), BY_GDCM[syntax])
    uid = UNPACKED[syntax]
    if syntax == "rle":
        made.compress(uid, encoding_plugin="pydicom", generate_instance_uid=False)
    elif syntax == "big":
        made.PixelData = np.frombuffer(made.PixelData, "<u2").astype(">u2").tobytes()
    made.file_meta.TransferSyntaxUID = uid
    pydicom.dcmwrite(
        path, made, implicit_vr=syntax == "implicit", little_endian=syntax != "big", enforce_file_format=True
    )
    return path


def _packed(path: Path, syntax: str) -> Path:
    import gdcm

    reader, change, writer = gdcm.ImageReader(), gdcm.ImageChangeTransferSyntax(), gdcm.ImageWriter()
    reader.SetFileName(str(path))
    assert reader.Read()
    change.SetTransferSyntax(gdcm.TransferSyntax(getattr(gdcm.TransferSyntax, syntax)))
    change.SetInput(reader.GetImage())
    assert change.Change()
    writer.SetFileName(str(path))
    writer.SetFile(reader.GetFile())
    writer.SetImage(change.GetOutput())
    assert writer.Write()
    return path


# Names that must not get out.

WORD = "QZKVWXJP"
NUMBER = "739184620"
NAMES = {
    "ISO_IR 100": "QÄZÖKÜVßXJP",
    "ISO_IR 126": "ΩΨΞΔΛΣΠΘΦ",
    "ISO_IR 144": "ЖЩЮЯЪЫЭЦЧ",
    "ISO_IR 192": "鬱鷹鰯鯖鱒鮭鯉鮎",
}
"""Character sets, and a patient's name in each."""

PLANTED = (WORD, NUMBER, *NAMES.values())
"""What stands in every planted string, so that finding any of them is finding these."""

_TEXTS = {
    "AE": ("0008,0054", "{w}{n}"),
    "AS": ("0010,1010", "739Y"),
    "CS": ("0018,1400", "{w}"),
    "DA": ("0010,0030", "{d}"),
    "DS": ("0010,1030", "{d}"),
    "DT": ("0008,002a", "{d}120000"),
    "IS": ("0020,0013", "{i}"),
    "LO": ("0008,0080", "{w} hospital {n}"),
    "LT": ("0010,4000", "{w} comments {n}"),
    "PN": ("0008,0090", "{w}^{n}"),
    "SH": ("0008,0050", "{w}{n}"),
    "ST": ("0008,0081", "{w} street {n}"),
    "TM": ("0008,0030", "{d}"),
    "UC": ("0018,9908", "{w} unlimited {n}"),
    "UI": ("0020,000d", "1.2.{d}.{n}"),
    "UR": ("0008,1190", "https://{w}.example/{n}"),
    "UT": ("0040,a160", "{w} text {n}"),
}
_BINARY = {"OB": "0042,0011", "OW": "6000,3000", "UN": "0009,1010"}


def planted(number: int, charset: str) -> FileDataset:
    """Return a radiograph with sixty strings in it that say who it is of."""
    made = radiograph(picture(rows=8, columns=8, seed=number), name=f"{NUMBER}.{number}")
    words = {"w": WORD, "n": str(number), "d": NUMBER, "i": NUMBER}
    made.SpecificCharacterSet = charset
    made.PatientName = f"{NAMES[charset]}^{NAMES[charset]}"
    made.PatientID, made.IssuerOfPatientID = f"{WORD}{NUMBER}{number}", f"{WORD} issuer"
    _texts(made, words)
    for tag in _BINARY.values():
        _add(made, tag, "OB", f"{WORD}{NUMBER}{number}".encode() + b" ")
    made.ViewPosition, made.BodyPartExamined, made.Laterality = WORD, f"{WORD} {number}", WORD[:2]
    made.OtherPatientIDsSequence = Sequence([_nested(words, depth=3)])
    _private(made, number)
    made.IconImageSequence = Sequence([_icon(number)])
    made.DataSetTrailingPadding = f"{WORD}{NUMBER}{number}".encode() + b" "
    made.file_meta.SourceApplicationEntityTitle = f"{WORD}{number}"
    made.file_meta.PrivateInformationCreatorUID = UID(f"1.2.{NUMBER}")
    made.file_meta.PrivateInformation = f"{WORD}{NUMBER} ".encode()
    made.preamble = f"{WORD}{NUMBER}{number}{NAMES[charset]}".encode()[:128].ljust(128, b"\0")
    return made


def _texts(made: Dataset, words: dict[str, str]) -> None:
    for vr, (tag, text) in _TEXTS.items():
        _add(made, tag, vr, text.format(**words))


def _add(made: Dataset, tag: str, vr: str, value: object) -> None:
    group, element = (int(part, 16) for part in tag.split(","))
    made.add(pydicom.DataElement((group, element), vr, value, validation_mode=0))


def _nested(words: dict[str, str], *, depth: int) -> Dataset:
    made = Dataset()
    _texts(made, words)
    if depth:
        made.OtherPatientIDsSequence = Sequence([_nested(words, depth=depth - 1)])
    return made


def _private(made: Dataset, number: int) -> None:
    for group in (0x0011, 0x0029):
        block = made.private_block(group, f"{WORD} PRIVATE", create=True)
        block.add_new(1, "LO", f"{WORD}{NUMBER}{number}")
        block.add_new(2, "OB", f"{WORD}{NUMBER}".encode())
        block.add_new(3, "SQ", Sequence([_nested({"w": WORD, "n": NUMBER, "d": NUMBER, "i": NUMBER}, depth=0)]))


def _icon(number: int) -> Dataset:
    made = Dataset()
    made.Rows, made.Columns, made.BitsAllocated, made.PixelData = 1, 16, 8, f"{WORD}{number:08d}".encode()
    made["PixelData"].VR = "OB"
    return made


def strings(made: Dataset) -> Iterator[object]:
    """Yield every value of a file that holds something planted."""
    for element in made.iterall():
        told = element.value if isinstance(element.value, bytes) else str(element.value).encode()
        if element.VR != "SQ" and any(name.encode() in told for name in PLANTED):
            yield element.value
