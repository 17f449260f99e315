"""Published data sets: what they are, whose, under which licence, which files they come in, and where those lie."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

from relook.errors import BadInput

FOLDER = "RELOOK_DATA"
"""The environment variable that says where data sets lie, when no folder is named."""

State = Literal["there", "in part", "no"]


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a data set, and where its publisher offers it.

    `digest` is `sha256:` or `md5:` and the publisher's number; without one, or without `url`, the file is to be got by
    hand from the page `page`. `most` is the length that it cannot exceed. `holds` are the files that are taken out of
    an archive. One that is `optional` adds something.
    """

    name: str
    page: str
    url: str | None = None
    digest: str | None = None
    most: int = 0
    holds: tuple[str, ...] = ()
    optional: bool = False

    @property
    def by_hand(self) -> bool:
        """Whether it cannot be downloaded and checked."""
        return self.url is None or self.digest is None


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A data set that others have published; its files lie in the folder `folder` of the folder of data sets.

    `others` are files that do just as well as all of `files`: another layout of the same.
    """

    name: str
    folder: str
    what: str
    licence: str
    citation: str
    bibtex: str
    files: tuple[File, ...]
    others: tuple[str, ...] = ()

    def place(self, folder: Path, name: str) -> Path | None:
        """Return where a file of the set lies in a folder of data sets, or None."""
        tried = (folder / self.folder / name, folder / name)
        return next((path for path in tried if path.exists()), None)

    def state(self, folder: Path) -> State:
        """Return whether the set lies in a folder."""
        names = [name for file in self.files if not file.optional for name in file.holds or (file.name,)]
        found = [self.place(folder, name) is not None for name in names]
        if all(found) or any(self.place(folder, name) is not None for name in self.others):
            return "there"
        return "in part" if any(found) else "no"

    def needed(self, folder: Path, name: str) -> Path:
        """Return where a file of the set lies, or say where to get it."""
        found = self.place(folder, name)
        if found is None or not found.is_file():
            file = next(file for file in self.files if file.name == name)
            cure = "" if file.by_hand else f", or with relook datasets get {self.name}"
            raise BadInput(
                f"{self.name}: {folder / self.folder / name} was needed, but there is no such file; get {name} from "
                f"{file.page}{cure}"
            )
        return found


def named(name: str) -> Published:
    """Return a published data set by its name."""
    if name not in PUBLISHED:
        raise BadInput(
            f"datasets: the name of a published set was needed ({', '.join(PUBLISHED)}), but {name!r} came; "
            "check the spelling"
        )
    return PUBLISHED[name]


def data_folder(folder: str | Path | None, *, what: str) -> Path:
    """Return the folder of data sets: the one that is named, else the one that RELOOK_DATA names."""
    found = folder if folder is not None else os.environ.get(FOLDER)
    if not found:
        raise BadInput(f"{what}: a folder was needed, but none was given; name it, or set {FOLDER} to it")
    return Path(found)


_CIFAR10 = """@techreport{krizhevsky2009learning,
  title       = {Learning multiple layers of features from tiny images},
  author      = {Krizhevsky, Alex},
  institution = {University of Toronto},
  year        = {2009}
}"""

_CIFAR10H = """@inproceedings{peterson2019human,
  title     = {Human uncertainty makes classification more robust},
  author    = {Peterson, Joshua C. and Battleday, Ruairidh M. and Griffiths, Thomas L. and Russakovsky, Olga},
  booktitle = {Proceedings of the IEEE/CVF International Conference on Computer Vision (ICCV)},
  pages     = {9617--9626},
  year      = {2019}
}"""

_CIFAR10N = """@inproceedings{wei2022learning,
  title     = {Learning with noisy labels revisited: A study using real-world human annotations},
  author    = {Wei, Jiaheng and Zhu, Zhaowei and Cheng, Hao and Liu, Tongliang and Niu, Gang and Liu, Yang},
  booktitle = {International Conference on Learning Representations},
  year      = {2022}
}"""

_MEDMNIST = """@article{yang2023medmnist,
  title   = {{MedMNIST} v2 -- A large-scale lightweight benchmark for {2D} and {3D} biomedical image classification},
  author  = {Yang, Jiancheng and Shi, Rui and Wei, Donglai and Liu, Zequan and Zhao, Lin and Ke, Bilian
             and Pfister, Hanspeter and Ni, Bingbing},
  journal = {Scientific Data},
  volume  = {10},
  pages   = {41},
  year    = {2023},
  doi     = {10.1038/s41597-022-01721-8}
}"""

_RSNA = """@article{shih2019augmenting,
  title   = {Augmenting the {National Institutes of Health} chest radiograph dataset with expert annotations of
             possible pneumonia},
  author  = {Shih, George and Wu, Carol C. and Halabi, Safwan S. and Kohli, Marc D. and Prevedello, Luciano M.
             and others},
  journal = {Radiology: Artificial Intelligence},
  volume  = {1},
  number  = {1},
  year    = {2019},
  doi     = {10.1148/ryai.2019180041}
}

@inproceedings{wang2017chestxray8,
  title     = {{ChestX-ray8}: Hospital-scale chest {X}-ray database and benchmarks},
  author    = {Wang, Xiaosong and Peng, Yifan and Lu, Le and Lu, Zhiyong and Bagheri, Mohammadhadi
               and Summers, Ronald M.},
  booktitle = {Proceedings of the IEEE Conference on Computer Vision and Pattern Recognition (CVPR)},
  year      = {2017}
}"""

_H_PAGE, _N_PAGE = "github.com/jcpeterson/cifar-10h (its folder data)", "github.com/UCSC-REAL/cifar-10-100n"
_H_RAW = "https://raw.githubusercontent.com/jcpeterson/cifar-10h/master/data/"
_N_RAW = "https://raw.githubusercontent.com/UCSC-REAL/cifar-10-100n/main/"
_MED_RAW, _MED_PAGE = "https://zenodo.org/records/10519652/files/", "zenodo.org/records/10519652"
_KAGGLE = "kaggle.com/c/rsna-pneumonia-detection-challenge"
_RSNA_PAGE = "the RSNA's page of its pneumonia challenge of 2018"

_SETS = (
    Published(
        name="cifar10",
        folder="cifar10",
        what="60,000 images of ten kinds of things, 32 x 32 pixels",
        licence="none stated",
        citation="Krizhevsky 2009",
        bibtex=_CIFAR10,
        files=(
            File(
                name="cifar-10-binary.tar.gz",
                page="www.cs.toronto.edu/~kriz/cifar.html",
                url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                digest="md5:c32a1d4ab5d03f1284b67883e8d87530",
                most=170_052_171,
                holds=(
                    *(f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6)),
                    "cifar-10-batches-bin/test_batch.bin",
                ),
            ),
        ),
        others=("cifar-10-batches-py", "images.tar.xz"),
    ),
    Published(
        name="cifar10h",
        folder="cifar10h",
        what="10,000 test images of CIFAR-10 with 51.1 answers of people each",
        licence="CC BY-NC-SA 4.0",
        citation="Peterson et al. 2019",
        bibtex=_CIFAR10H,
        files=(
            File(
                name="cifar10h-counts.npy",
                page=_H_PAGE,
                url=f"{_H_RAW}cifar10h-counts.npy",
                digest="sha256:9b36b4550349af56c79083356312eb4af856cc5fd3caf1f669d40b9d0bbb69ff",
                most=800_128,
            ),
            File(name="cifar10h-raw.csv", page=f"{_H_PAGE}, in cifar10h-raw.zip", optional=True),
        ),
    ),
    Published(
        name="cifar10n",
        folder="cifar10n",
        what="50,000 training images of CIFAR-10 with three answers of people each",
        licence="CC BY-NC 4.0",
        citation="Wei et al. 2022",
        bibtex=_CIFAR10N,
        files=(
            File(
                name="CIFAR-10_human.pt",
                page=_N_PAGE,
                url=f"{_N_RAW}data/CIFAR-10_human.pt",
                digest="sha256:873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310",
                most=2_401_007,
            ),
            File(
                name="side_info_cifar10N.csv",
                page=_N_PAGE,
                url=f"{_N_RAW}side_info_cifar10N.csv",
                digest="sha256:50fcbe619a003d0b804a20ece51447dcdb48978c60e1202371d08302b2e14351",
                most=170_902,
            ),
            File(
                name="image_order_c10.npy",
                page=_N_PAGE,
                url=f"{_N_RAW}image_order_c10.npy",
                digest="sha256:db41bd6c919c154739e796d50ea811feffc77a8ab13a72639b9806cf708f1724",
                most=400_128,
            ),
        ),
    ),
    *(
        Published(
            name=f"{name}mnist",
            folder=f"{name}mnist",
            what=what,
            licence="CC BY 4.0",
            citation="Yang et al. 2023",
            bibtex=_MEDMNIST,
            files=(
                File(
                    name=f"{name}mnist.npz",
                    page=_MED_PAGE,
                    url=f"{_MED_RAW}{name}mnist.npz?download=1",
                    digest=digest,
                    most=most,
                ),
            ),
        )
        for name, what, digest, most in (
            (
                "pneumonia",
                "5,856 chest radiographs of children, 28 x 28 pixels: pneumonia?",
                "md5:28209eda62fecd6e6a2d98b1501bb15f",
                10_000_000,
            ),
            (
                "chest",
                "112,120 chest radiographs, 28 x 28 pixels, with 14 findings mined from reports",
                "md5:02c8a6516a18b556561a56cbdd36c4a8",
                100_000_000,
            ),
        )
    ),
    Published(
        name="noisy_cxr",
        folder="rsna",
        what="26,684 chest radiographs with labels mined from reports and read by radiologists",
        licence="for research; see RSNA and NIH",
        citation="Bernhardt et al. 2022; Shih et al. 2019; Wang et al. 2017",
        bibtex=_RSNA,
        files=(
            File(name="stage_2_train_labels.csv", page=_KAGGLE),
            File(name="stage_2_detailed_class_info.csv", page=_KAGGLE),
            File(
                name="pneumonia-challenge-dataset-mappings_2018.json",
                page=_RSNA_PAGE,
                url="https://s3.amazonaws.com/east1.public.rsna.org/AI/2018/"
                "pneumonia-challenge-dataset-mappings_2018.json",
                digest="sha256:803ce79e3bc9c66d3631738e91e62e1175730e98ad1415e8dc4d6292ba10bf27",
                most=100_000_000,
            ),
            File(
                name="RSNA_pneumonia_all_probs.csv",
                page="storage.googleapis.com/kaggle-forum-message-attachments/844865/15542/"
                "RSNA_pneumonia_all_probs.csv.zip",
                optional=True,
            ),
            File(name="Data_Entry_2017.csv", page="nihcc.app.box.com/v/ChestXray-NIHCC", optional=True),
        ),
    ),
)

PUBLISHED: Mapping[str, Published] = MappingProxyType({found.name: found for found in _SETS})
"""The published data sets that relook reads, by name.

The publishers' own sums are those of CIFAR-10's archives (its page) and of MedMNIST (its package, `medmnist/info.py`);
those of CIFAR-10H and CIFAR-10N were taken from the published files, that of the RSNA's mapping from a project that
had downloaded it.
"""
