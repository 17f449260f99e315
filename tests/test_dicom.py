"""DICOM: every bit goes in, names do not, and a broken file is a sentence whatever it does to its decoder."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pydicom
import pytest
from numpy.typing import NDArray
from PIL import Image
from pydicom.dataset import FileDataset

from relook import apart, imported
from relook.collection import GIVEN, KEPT, Collection, Form
from relook.datasets import dicom
from relook.datasets.dicom import Site
from relook.errors import BadInput, MissingExtra
from relook.imported import Imported, write
from relook.pseudonyms import site_key
from relook.radiograph import RELEASABLE
from relook.sources import Columns
from tests.dicoms import BY_GDCM, UNPACKED, colored, picture, radiograph, saved

CLASSES = Columns(classes=("normal", "pneumonia"))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site.key")


def read(path: Path, site: Site, labels: Collection | None = None) -> Collection:
    return dicom.collection(path, columns=CLASSES, labels=labels, site=site)


def imported_set(path: Path, site: Site, labels: Collection | None = None) -> Imported:
    folder = path if path.is_dir() else path.parent
    return write(read(path, site, labels), folder.parent / "set")[0]


def pixels(found: Imported, item: int = 0, view: int = 0) -> NDArray[Any]:
    name = found.items().collect()["files"][item][view]
    with Image.open(found.root / name) as image:
        assert (image.format, image.info) == ("PNG", {})
        return np.asarray(image).astype(np.int64)


def said(found: Imported | Collection, column: str) -> Any:
    items = found.items() if isinstance(found, Imported) else found.items
    return items.collect()[KEPT + column][0]


def in_units(found: Imported) -> NDArray[Any]:
    """Return pixels in the units of the modality, by the mapping that was recorded."""
    return pixels(found) * float(said(found, "rescale_slope")) + float(said(found, "rescale_intercept"))


# Every bit.


@pytest.mark.parametrize("syntax", [*UNPACKED, *BY_GDCM])
def test_every_way_of_packing_gives_the_same_pixels(syntax: str, tmp_path: Path, site: Site) -> None:
    bits = 8 if syntax == "jpeg" else 12
    values = picture(bits)
    found = imported_set(saved(radiograph(values, bits=bits), tmp_path / "in" / "a.dcm", syntax).parent, site)
    packed = pydicom.dcmread(tmp_path / "in" / "a.dcm").file_meta.TransferSyntaxUID
    expected = {"jpeg": "JPEG Baseline (Process 1)", "jpeg 2000": "JPEG 2000 Image Compression (Lossless Only)"}
    assert packed.name == expected.get(syntax, packed.name)
    difference = np.abs(in_units(found) - values)
    assert difference.max() <= (12 if syntax == "jpeg" else 0)
    assert pixels(found).dtype.itemsize == 8
    if syntax != "jpeg":
        assert pixels(found).max() == (2**bits - 1) << 4


@pytest.mark.parametrize("bits", [1, 7, 8, 10, 12, 15, 16])
def test_every_depth_keeps_every_bit(bits: int, tmp_path: Path, site: Site) -> None:
    values = picture(bits)
    made = radiograph(values, bits=bits)
    found = imported_set(saved(made, tmp_path / "in" / "a.dcm"), site)
    assert (in_units(found) == values).all()
    assert said(found, "bits_stored") == str(bits)
    # The largest value that so many bits hold is the brightest that so many hold with zeros behind them.
    depth = 8 if bits <= 8 else 16
    assert pixels(found).max() == (2**bits - 1) << (depth - bits)


@pytest.mark.parametrize("interpretation", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize("lowest", [0, -2048])
def test_what_is_bright_is_large_and_the_mapping_leads_back(
    interpretation: str, lowest: int, tmp_path: Path, site: Site
) -> None:
    values = picture(12) + lowest
    tags: dict[str, Any] = {
        "PhotometricInterpretation": interpretation,
        "RescaleSlope": "2",
        "RescaleIntercept": "-1000",
    }
    made = radiograph(values, WindowCenter=["40", "400.5"], WindowWidth=["80", "1500"], **tags)
    found = imported_set(saved(made, tmp_path / "in" / "a.dcm"), site)
    assert (in_units(found) == values * 2 - 1000).all()
    assert (pixels(found)[0, 0] > pixels(found)[-1, -1]) == (interpretation == "MONOCHROME1")
    assert said(found, "photometric_interpretation") == interpretation
    assert (said(found, "window_center"), said(found, "window_width")) == ("40\\400.5", "80\\1500")
    assert said(found, "signed") == str(int(lowest < 0))


def test_bits_that_are_not_the_images_are_cleared(tmp_path: Path, site: Site) -> None:
    values = picture(12)
    hidden = radiograph(values | (0b1010 << 12))
    hidden.BitsStored, hidden.HighBit = 12, 11
    assert (in_units(imported_set(saved(hidden, tmp_path / "in" / "a.dcm"), site)) == values).all()
    above = radiograph((values << 4) | 0b101, name="2")
    above.HighBit = 15
    assert (in_units(imported_set(saved(above, tmp_path / "above" / "in" / "a.dcm"), site)) == values).all()


def test_colours(tmp_path: Path, site: Site) -> None:
    values = np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8)
    found = imported_set(saved(colored(values), tmp_path / "in" / "a.dcm"), site)
    assert (pixels(found) == values).all()
    planes = colored(values, name="2", PlanarConfiguration=1, PixelData=values.transpose(2, 0, 1).tobytes())
    assert (pixels(imported_set(saved(planes, tmp_path / "planes" / "in" / "a.dcm"), site)) == values).all()


@pytest.mark.parametrize("depth", [8, 16])
def test_a_palette_is_looked_up(depth: int, tmp_path: Path, site: Site) -> None:
    numbers = np.arange(64).reshape(8, 8) % 16
    made = radiograph(numbers, bits=8, PhotometricInterpretation="PALETTE COLOR")
    colors = np.random.default_rng(1).integers(0, 256, (3, 16))
    for name, color in zip(("Red", "Green", "Blue"), colors, strict=True):
        setattr(made, f"{name}PaletteColorLookupTableDescriptor", [16, 0, depth])
        lookup = color.astype("<u1" if depth == 8 else "<u2") * (1 if depth == 8 else 257)
        setattr(made, f"{name}PaletteColorLookupTableData", lookup.astype(f"<u{depth // 8}").tobytes())
    found = imported_set(saved(made, tmp_path / "in" / "a.dcm"), site)
    assert (pixels(found) == colors.T[numbers]).all()
    assert KEPT + "rescale_slope" not in found.items().collect().columns


def test_up_to_eight_frames_are_the_images_of_an_item(tmp_path: Path, site: Site) -> None:
    values = np.stack([picture(12, seed=seed) for seed in range(9)])
    found = imported_set(saved(radiograph(values[:8], NumberOfFrames=8), tmp_path / "in" / "a.dcm"), site)
    names = found.items().collect()["files"][0].to_list()
    assert names == [f"{found.items().collect()['id'][0]}-{number}.png" for number in range(1, 9)]
    assert all((pixels(found, view=view) >> 4 == values[view]).all() for view in range(8))
    with pytest.raises(BadInput, match="1 to 8 images were needed, but it holds 9; films and volumes are not taken"):
        read(saved(radiograph(values, NumberOfFrames=9), tmp_path / "film.dcm"), site)


# What is let in beside the pixels.


def test_allowed_tags_are_columns_and_others_are_not(tmp_path: Path, site: Site) -> None:
    tags: dict[str, Any] = {
        "ViewPosition": "PA",
        "Laterality": "L",
        "BodyPartExamined": "chest",
        "ImagerPixelSpacing": ["0.139", "0.139"],
        "PatientName": "Doe^Jane",
        "StudyDate": "20200101",
    }
    found = read(saved(radiograph(picture(), **tags), tmp_path / "in" / "a.dcm"), site)
    row = found.items.collect().row(0, named=True)
    assert {name.removeprefix(KEPT): value for name, value in row.items() if name.startswith(KEPT)} == {
        "bits_stored": "12",
        "body_part_examined": "CHEST",
        "imager_pixel_spacing": "0.139\\0.139",
        "laterality": "L",
        "modality": "DX",
        "photometric_interpretation": "MONOCHROME2",
        "rescale_intercept": "0.0",
        "rescale_slope": "0.0625",
        "signed": "0",
        "view_position": "PA",
    }
    assert set(row) - {KEPT + name for name in row} >= {"id", "group"}
    assert found.form == Form("dicom", settings={"key": site_key(site.key).mark})


def test_words_that_are_not_the_standards_are_left_out(tmp_path: Path, site: Site) -> None:
    made = radiograph(picture(), ViewPosition="JANE DOE", BodyPartExamined="CHEST")
    found = read(saved(made, tmp_path / "a.dcm"), site)
    assert KEPT + "view_position" not in found.columns
    assert any("with words that the standard does not define, which are left out: 1" in fact for fact in found.facts)


def test_ids_come_from_the_instance_and_groups_from_the_patient(tmp_path: Path, site: Site) -> None:
    key = site_key(site.key)
    folder = tmp_path / "in"
    saved(radiograph(picture(), name="1", PatientID="77", IssuerOfPatientID="north"), folder / "a.dcm")
    saved(radiograph(picture(), name="2", PatientID="77 ", IssuerOfPatientID="north"), folder / "b.dcm")
    saved(radiograph(picture(), name="3", PatientID="77", IssuerOfPatientID="south"), folder / "c.dcm")
    saved(radiograph(picture(), name="4", PatientID="", SOPInstanceUID=""), folder / "d.dcm")
    saved(radiograph(picture(seed=1), name="5", PatientID="", SOPInstanceUID=""), folder / "e.dcm")
    items = read(folder, site).items.collect()
    group = dict(items.select("id", "group").iter_rows())
    assert items["id"].to_list() == sorted(items["id"])
    one, two, three = (key.pseudonym("item", f"1.2.3.{number}") for number in (1, 2, 3))
    assert group[one] == group[two] == key.pseudonym("patient", "north", "77") != group[three]
    assert len(set(group.values())) == 4
    assert {name: file.name for name, file in dicom.pseudonyms(folder, site=site).items()}[three] == "c.dcm"


def test_twice_is_once_and_another_key_is_another_set(tmp_path: Path, site: Site) -> None:
    saved(radiograph(picture()), tmp_path / "in" / "a.dcm")
    first = imported_set(tmp_path / "in", site)
    assert write(read(tmp_path / "in", site), tmp_path / "set") == (first, False)
    with pytest.raises(BadInput, match="another set is there already"):
        write(read(tmp_path / "in", Site(tmp_path / "other.key")), tmp_path / "set")
    imported.verify(first)


# What was said about them.


def table(names: list[str], labels: list[str], **columns: Any) -> Collection:
    ids = pl.Series(names, dtype=pl.String)
    items = pl.DataFrame({"id": ids, KEPT + "patient": ["Jane Doe"] * len(names), **columns})
    return Collection(
        source="labels.csv",
        form=Form("csv"),
        classes=("normal", "pneumonia"),
        ids=ids,
        items=items.lazy(),
        answers=pl.DataFrame({"item": range(len(names)), "annotator": [GIVEN] * len(names), "label": labels}),
        first_line=2,
    )


def labels_by_instance(found: Collection, site: Site) -> dict[str, str]:
    key = site_key(site.key)
    names = {key.pseudonym("item", f"1.2.3.{number}"): str(number) for number in range(9)}
    rows = found.answers.select("item", pl.col("label").cast(pl.String)).iter_rows()
    return {names[found.ids[item]]: label for item, label in rows}


def test_folders_named_as_classes_are_labels(tmp_path: Path, site: Site) -> None:
    saved(radiograph(picture(), name="1"), tmp_path / "in" / "normal" / "a.dcm")
    saved(radiograph(picture(), name="2"), tmp_path / "in" / "pneumonia" / "Jane Doe" / "b.dcm")
    saved(radiograph(picture(), name="3"), tmp_path / "in" / "Joe Doe" / "c.dcm")
    found = read(tmp_path / "in", site)
    assert labels_by_instance(found, site) == {"1": "normal", "2": "pneumonia"}
    assert "Items without a label: 1." in found.facts
    with pytest.raises(
        BadInput, match="names of classes were needed, as a folder of DICOM may be named after a patient"
    ):
        dicom.collection(tmp_path / "in", site=site)


def test_a_table_finds_its_files_by_path_name_stem_or_instance(tmp_path: Path, site: Site) -> None:
    for number, name in enumerate(("x/a.dcm", "y/b.dcm", "y/c", "y/d.dcm", "y/e.dcm"), 1):
        saved(radiograph(picture(), name=str(number)), tmp_path / "in" / name)
    names = ["x/a.dcm", "b.dcm", "1.2.3.3", "d", "gone.dcm"]
    labels = table(names, ["normal", "pneumonia", "normal", "pneumonia", "normal"], split=list("ttvvv"))
    found = read(tmp_path / "in", site, labels)
    assert labels_by_instance(found, site) == {"1": "normal", "2": "pneumonia", "3": "normal", "4": "pneumonia"}
    assert found.facts[-2:] == ("Labels whose file is not there or is held back: 1.", "Items without a label: 1.")
    assert sorted(found.items.collect()["split"].to_list(), key=str) == [None, "t", "t", "v", "v"]
    assert KEPT + "patient" not in found.columns


def test_a_row_of_several_files_is_one_item(tmp_path: Path, site: Site) -> None:
    for number, view in ((1, "PA"), (2, "LL"), (3, "PA")):
        made = radiograph(picture(seed=number), name=str(number), PatientID="77", ViewPosition=view)
        saved(made, tmp_path / "in" / f"{number}.dcm")
    labels = table(["study"], ["pneumonia"], files=[["2.dcm", "1.dcm"]])
    found = imported_set(tmp_path / "in", site, labels)
    rows = {row["id"]: row for row in found.items().collect().iter_rows(named=True)}
    (study,) = (row for row in rows.values() if len(row["files"]) == 2)
    assert study["column:view_position"] == "LL|PA"
    assert len(rows) == 2
    assert found.dataset().given.given[list(rows).index(study["id"])] == 1


def bad_table(what: str, folder: Path) -> Collection:
    (folder / "again").mkdir(parents=True)
    for number, (name, patient) in enumerate({"a.dcm": "7", "b.dcm": "8", "again/a.dcm": "7"}.items(), 1):
        saved(radiograph(picture(), name=str(number), PatientID=patient), folder / name)
    seven = np.stack([picture()] * 7)
    saved(radiograph(seven, name="4", PatientID="7", NumberOfFrames=7), folder / "seven.dcm")
    saved(radiograph(seven, name="5", PatientID="7", NumberOfFrames=7), folder / "more.dcm")
    return {
        "one name of several files": table(["a.dcm"], ["normal"]),
        "a file twice": table(["b.dcm", "b"], ["normal"] * 2),
        "no file": table(["x", "y"], ["normal"] * 2),
        "several patients": table(["s"], ["normal"], files=[["b.dcm", "again/a.dcm"]]),
        "many images": table(["s"], ["normal"], files=[["seven.dcm", "more.dcm"]]),
    }[what]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("one name of several files", r"line 2 \(id a.dcm\): one file was needed, but 2 files have the name 'a.dcm'"),
        ("a file twice", "a file of its own was needed, but labels.csv, line 2 .* has it too; remove one of them"),
        ("no file", "were needed, but none of 2 rows has one; name a column of file names or SOP instance UIDs"),
        ("several patients", "images of one patient were needed, but several patients came; mend the row"),
        ("many images", "at most 8 images were needed, but 14 came; leave some of them out"),
    ],
)
def test_tables_that_do_not_fit_are_refused(what: str, message: str, tmp_path: Path, site: Site) -> None:
    with pytest.raises(BadInput, match=message):
        read(tmp_path / "in", site, bad_table(what, tmp_path / "in"))


# What is held back.

HELD: dict[str, dict[str, Any]] = {
    "burned-in": {"BurnedInAnnotation": "YES"},
    "secondary-capture": {"SOPClassUID": "1.2.840.10008.5.1.4.1.1.7"},
    "ultrasound": {"Modality": "US"},
    "head": {"Modality": "CT", "BodyPartExamined": "BRAIN"},
}


@pytest.mark.parametrize("reason", RELEASABLE)
def test_what_may_show_a_name_or_a_face_is_held_back_until_it_is_released(
    reason: str, tmp_path: Path, site: Site
) -> None:
    saved(radiograph(picture(), name="1", **HELD[reason]), tmp_path / "in" / "held.dcm")
    with pytest.raises(BadInput, match=rf"all of 1 file are held back \({reason} 1\); look at them, and release"):
        read(tmp_path / "in", site)
    saved(radiograph(picture(), name="2"), tmp_path / "in" / "free.dcm")
    found = read(tmp_path / "in", site)
    assert len(found) == 1
    assert f"Files held back, as names or faces may show: 1 ({reason} 1)." in found.facts
    assert len(read(tmp_path / "in", Site(site.key, (reason,)))) == 2


def test_only_reasons_are_released() -> None:
    with pytest.raises(BadInput, match=r"reasons to hold a file back were needed, of burned-in, .*, but 'all' came"):
        Site(released=("all",))


def test_files_that_say_nothing_of_burned_in_text_are_counted(tmp_path: Path, site: Site) -> None:
    made = radiograph(picture())
    del made.BurnedInAnnotation
    found = read(saved(made, tmp_path / "a.dcm"), site)
    assert found.facts[0] == "Files that do not say whether text is burned into the picture: 1; look at some."


def test_what_is_no_image_is_left_out_and_counted(tmp_path: Path, site: Site) -> None:
    folder = tmp_path / "in"
    saved(radiograph(picture()), folder / "a")
    report = radiograph(picture(), name="2")
    for name in ("Rows", "Columns", "SamplesPerPixel", "BitsAllocated", "BitsStored", "PhotometricInterpretation"):
        delattr(report, name)
    saved(report, folder / "report.dcm")
    (folder / "notes.txt").write_text("notes")
    (folder / "link.dcm").symlink_to(folder / "a")
    found = read(folder, site)
    assert found.facts[:3] == (
        "Left out: 1 file that is no DICOM.",
        "Not followed: 1 link.",
        "Files without an image, such as reports or a DICOMDIR, left out: 1.",
    )
    with pytest.raises(BadInput, match="DICOM images were needed, but no file holds one; name the folder"):
        read(folder / "report.dcm", site)


def test_paths_that_hold_no_dicom(tmp_path: Path, site: Site) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.dcm").write_bytes(b"no mark")
    with pytest.raises(BadInput, match=r"a.dcm: a DICOM file was needed, but the mark DICM is not in it; export"):
        read(tmp_path / "in", site)
    with pytest.raises(BadInput, match="the mark DICM is not in it"):
        read(tmp_path / "in" / "a.dcm", site)
    (tmp_path / "in" / "a.dcm").unlink()
    with pytest.raises(BadInput, match="DICOM files were needed, but the folder holds none; name the folder that they"):
        read(tmp_path / "in", site)
    with pytest.raises(BadInput, match="a DICOM file or a folder of them was needed, but there is none of this name"):
        read(tmp_path / "gone", site)


def test_a_key_beside_the_images_is_refused(tmp_path: Path) -> None:
    saved(radiograph(picture()), tmp_path / "in" / "a.dcm")
    with pytest.raises(BadInput, match="a place away from the images was needed for the site's key, but it is"):
        read(tmp_path / "in", Site(tmp_path / "in" / "site.key"))
    assert not (tmp_path / "in" / "site.key").exists()


def test_two_copies_of_an_image_are_refused(tmp_path: Path, site: Site) -> None:
    for name in ("a.dcm", "b.dcm"):
        saved(radiograph(picture()), tmp_path / "in" / name)
    with pytest.raises(BadInput, match=r"b.dcm: an image of its own was needed, but .*a.dcm is the same SOP instance"):
        read(tmp_path / "in", site)


# What is wrong with a file.


def without(*names: str) -> FileDataset:
    made = radiograph(picture())
    for name in names:
        delattr(made, name)
    return made


def cut(path: Path) -> None:
    """Take the end of a packed image away, and let the file be sound otherwise."""
    made = pydicom.dcmread(path)
    frame = next(pydicom.encaps.generate_frames(made.PixelData, number_of_frames=1))
    made.PixelData = pydicom.encaps.encapsulate([frame[: len(frame) // 4 * 2]])
    made.save_as(path)


WRONG: dict[str, tuple[Callable[[], FileDataset], str]] = {
    "no rows": (lambda: without("Rows"), "an image was needed, but its Rows is missing or unknown; leave the file out"),
    "no pixels": (lambda: without("PixelData"), "pixels were needed, but it has none; leave the file out"),
    "an unknown meaning": (
        lambda: radiograph(picture(), PhotometricInterpretation="HSV"),
        "but its PhotometricInterpretation is missing or unknown",
    ),
    "too many pixels": (
        lambda: radiograph(picture(), Rows=65535, Columns=65535),
        "at most 40 million pixels were needed, but it says 65535 x 65535, 1 samples, 1 times",
    ),
    "deep colours": (
        lambda: radiograph(picture(), SamplesPerPixel=3),
        "up to 16 bits of grey, or 8 of three colours, were needed, but it says 3 samples of 12 bits",
    ),
    "an unknown packing": (
        lambda: radiograph(picture()),
        "a known way of packing pixels was needed, but HTJ2K-RPCL .* came; export it unpacked",
    ),
    "colours that need more bits": (
        lambda: colored(
            np.zeros((6, 6, 3), np.uint8),
            BitsAllocated=16,
            PixelData=np.full((6, 6, 3), 300, "<u2").tobytes(),
        ),
        r"one image was needed, but pixels of shape \(6, 6, 3\) came; export the file again",
    ),
    "few pixels": (lambda: radiograph(picture(), Rows=1000), r"but it is broken \(ValueError\); export it again"),
    "words for numbers": (lambda: radiograph(picture(), NumberOfFrames="2"), r"it is broken \(ValueError\)"),
}


@pytest.mark.parametrize("what", WRONG)
def test_broken_files_are_refused(what: str, tmp_path: Path, site: Site) -> None:
    make, message = WRONG[what]
    path = saved(make(), tmp_path / "in" / "a.dcm")
    if what == "an unknown packing":
        path.write_bytes(path.read_bytes().replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.4.202"[:20]))
        message = "was needed, but .* came; export it unpacked"
    with pytest.raises(BadInput, match=message):
        write(read(path, site), tmp_path / "set")
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("syntax", BY_GDCM)
def test_a_cut_image_is_refused(syntax: str, tmp_path: Path, site: Site) -> None:
    path = saved(radiograph(picture(8), bits=8), tmp_path / "in" / "a.dcm", syntax)
    cut(path)
    with pytest.raises(BadInput, match="a whole image was needed, but its end is missing; export the file again"):
        write(read(path, site), tmp_path / "set")


def test_values_that_need_more_bits_than_they_have_are_refused(tmp_path: Path, site: Site) -> None:
    path = saved(radiograph(picture(12)), tmp_path / "in" / "a.dcm", "jpeg 2000")
    made = pydicom.dcmread(path)
    made.BitsStored, made.HighBit = 10, 9
    made.save_as(path)
    with pytest.raises(BadInput, match="values of 10 bits were needed, but they go from 0 to 4095; export the file"):
        write(read(path, site), tmp_path / "set")


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, site: Site) -> None:
    import zlib

    path = saved(radiograph(picture()), tmp_path / "in" / "a.dcm", "deflated")
    head = path.read_bytes()[: 144 + int(pydicom.dcmread(path).file_meta.FileMetaInformationGroupLength)]
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    zeros = bytes(2**20)
    path.write_bytes(head + b"".join(packer.compress(zeros) for _ in range(600)) + packer.flush())
    with pytest.raises(BadInput, match="at most 512 MB were needed, but it unpacks to more; leave the file out"):
        read(path, site)


def test_a_file_that_is_too_large_is_not_opened(tmp_path: Path, site: Site) -> None:
    path = saved(radiograph(picture()), tmp_path / "in" / "a.dcm")
    with path.open("r+b") as file:
        file.truncate(513 * 2**20)
    with pytest.raises(BadInput, match="at most 512 MB were needed, but the file is larger; leave it out"):
        read(path, site)


def test_a_decoder_that_crashes_costs_one_file(tmp_path: Path, site: Site) -> None:
    path = saved(radiograph(picture(8), bits=8), tmp_path / "a.dcm", "jpeg lossless")
    sound = saved(radiograph(picture(8), bits=8), tmp_path / "b.dcm", "jpeg lossless")
    with apart.Apart(site_key(site.key)) as decoder:
        assert decoder.header(path) is not None
        process = decoder._process
        assert process is not None
        process.kill()
        with pytest.raises(BadInput, match=r"its decoder crashed, or took more than 60 s or 1\.5 GB; leave"):
            decoder.write(path, tmp_path, names=["a.png"])
        decoder.write(sound, tmp_path, names=["b.png"])
        assert (tmp_path / "b.png").exists()


def test_without_the_extra_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: Site
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"pydicom and python-gdcm was needed, .* pip install 'relook\[dicom\]'"):
        read(saved(radiograph(picture()), tmp_path / "a.dcm"), site)


def test_a_name_that_is_no_utf8_is_read(tmp_path: Path, site: Site) -> None:
    folder = tmp_path / "in"
    path = saved(radiograph(picture()), folder / "a.dcm")
    path.rename(folder / b"M\xfcller.dcm".decode("utf-8", "surrogateescape"))
    assert len(read(folder, site)) == 1


def test_the_hash_of_a_file_is_not_kept(tmp_path: Path, site: Site) -> None:
    path = saved(radiograph(picture()), tmp_path / "in" / "a.dcm")
    origin = imported.Origin(sources=(imported.source_file(path),), root=path.parent)
    made, _ = write(read(path.parent, site), tmp_path / "set", origin=origin)
    assert made.manifest.sources == ()
    assert made.manifest.root is None
    whole = b"".join(file.read_bytes() for file in made.folder.rglob("*") if file.is_file())
    assert hashlib.sha256(path.read_bytes()).hexdigest().encode() not in whole
