"""The data sets: samples and facts, every source, and every way a file can be wrong.

The sources are exercised on a tiny data set in the official layout, so that no network is needed.
"""

import gzip
import hashlib
import io
import json
import lzma
import signal
import subprocess
import sys
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import faulty_server as faults
from adjoint_lib.errors import DataError, InputError
from adjoint_lib.experiments import resources
from adjoint_lib.experiments.data import cifar, download
from adjoint_lib.experiments.data import sets as data
from adjoint_lib.experiments.data import sources as data_sources
from adjoint_lib.experiments.data.checked import KnownFile
from adjoint_lib.experiments.data.cifar import DataSet
from faulty_server import FaultyServer

FOLDER = "tiny-bin"
LOCK = f".{FOLDER}.lock"
ROWS = {"batch_1.bin": 3, "batch_2.bin": 2, "held_out.bin": 4}


def known(name: str, content: bytes) -> KnownFile:
    return KnownFile(name, len(content), hashlib.sha256(content).hexdigest())


def tar(members: dict, ending: str = "gz") -> bytes:
    """An archive of {name: content}; a TarInfo in place of the content is added as it is."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    if ending == "xz":
        return lzma.compress(buffer.getvalue())
    return gzip.compress(buffer.getvalue(), mtime=0)  # the same bytes in every process


def link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


class Tiny:
    """A data set of a few random images: its content, its official archive, its description."""

    def __init__(self, label_bytes: int = 1) -> None:
        random = np.random.default_rng(label_bytes)
        self.labels, self.pixels, self.files = {}, {}, {}
        for name, rows in ROWS.items():
            self.labels[name] = random.integers(0, 10, (rows, label_bytes), dtype=np.uint8)
            self.pixels[name] = random.integers(0, 256, (rows, 32, 32, 3), dtype=np.uint8)
            self.files[name] = b"".join(
                bytes(label) + channels(image)
                for label, image in zip(self.labels[name], self.pixels[name], strict=True)
            )
        self.members = {f"{FOLDER}/{name}": content for name, content in self.files.items()}
        self.members[f"{FOLDER}/readme.html"] = b"not wanted"
        self.archive = tar(self.members)
        files = {name: known(name, content) for name, content in self.files.items()}
        self.dataset = DataSet(
            name="tiny",
            folder=FOLDER,
            archive=known("tiny.tar.gz", self.archive),
            splits={
                "train": (files["batch_1.bin"], files["batch_2.bin"]),
                "test": (files["held_out.bin"],),
            },
            label_bytes=label_bytes,
            classes=tuple("0123456789"),
            sample=cifar.DATASETS["cifar10"].sample,
        )

    def write_files(self, folder) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (folder / name).write_bytes(content)


def channels(image: np.ndarray) -> bytes:
    """The 3072 bytes of one image, red first, written out the slow way."""
    return bytes(image[r, c, k] for k in range(3) for r in range(32) for c in range(32))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no other place to look."""
    monkeypatch.delenv("ADJOINT_DATA", raising=False)
    monkeypatch.delenv("ADJOINT_MIRROR", raising=False)
    monkeypatch.setenv("ADJOINT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def tiny(cache, monkeypatch):
    tiny = Tiny()
    monkeypatch.setitem(data.DATASETS, "tiny", tiny.dataset)
    return tiny


@pytest.fixture
def own(tmp_path, monkeypatch, cache):
    """The user's own folder, named in ADJOINT_DATA."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setenv("ADJOINT_DATA", str(folder))
    return folder


@pytest.fixture
def server(tiny, monkeypatch):
    """A web server with the archive of the tiny data set, in place of the official one."""
    monkeypatch.setattr(download, "BACKOFF", 0.001)
    monkeypatch.setattr(download, "TIMEOUT", 0.5)
    with FaultyServer() as server:
        server.body = tiny.archive
        monkeypatch.setenv("ADJOINT_MIRROR", server.url)
        yield server


@pytest.fixture
def no_network(monkeypatch):
    """Fail loudly if anything is fetched after all."""

    def refuse(*args):
        raise AssertionError("this must not need a source beyond this machine")

    monkeypatch.setattr(data, "from_web", refuse)


def assert_loads(tiny: Tiny) -> None:
    for split, names in {"train": ["batch_1.bin", "batch_2.bin"], "test": ["held_out.bin"]}.items():
        images, labels = data.load("tiny", split)
        expected = np.concatenate([tiny.pixels[name] for name in names])
        assert images.dtype == np.float32 and labels.dtype == np.int64
        np.testing.assert_array_equal(images, expected.astype(np.float32) / np.float32(255))
        np.testing.assert_array_equal(
            labels, np.concatenate([tiny.labels[name][:, -1] for name in names])
        )


def names_in(folder) -> list[str]:
    """The files of a folder, but for the lock of the cache, which stays there."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in paths if path.name != LOCK)


FULL_CACHE = sorted(f"{FOLDER}/{name}" for name in ROWS)


# The embedded samples and the tables.


@pytest.mark.parametrize(("name", "count"), [("cifar10", 300), ("cifar100", 20)])
def test_samples_have_the_promised_form(name, count):
    images, labels = data.sample(name)
    assert images.shape == (count, 32, 32, 3) and images.dtype == np.float32
    assert labels.shape == (count,) and labels.dtype == np.int64
    assert images.min() >= 0 and images.max() <= 1 and images.max() > 0.9
    assert labels.min() >= 0 and labels.max() < len(data.CLASS_NAMES[name])
    np.testing.assert_array_equal(np.round(images * 255) / np.float32(255), images)


def test_the_cifar10_sample_begins_like_the_test_split():
    images, labels = data.sample("cifar10")
    assert labels[:5].tolist() == [3, 8, 8, 0, 6]
    assert np.round(images[0, 0, 0] * 255).tolist() == [158, 112, 49]
    assert [data.CLASS_NAMES["cifar10"][label] for label in labels[:3]] == ["cat", "ship", "ship"]
    assert set(labels.tolist()) == set(range(10))


def test_the_cifar100_sample_has_fine_labels():
    _, labels = data.sample("cifar100")
    assert labels[:5].tolist() == [49, 33, 72, 51, 71]
    assert data.CLASS_NAMES["cifar100"][49] == "mountain"


@pytest.mark.parametrize(("name", "count"), [("cifar10", 10), ("cifar100", 100)])
def test_class_names(name, count):
    names = data.CLASS_NAMES[name]
    assert len(names) == len(set(names)) == count
    assert list(names) == sorted(names)  # both official lists are alphabetical


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_the_tables_describe_60000_images(name):
    dataset = data.DATASETS[name]
    rows = {
        split: [divmod(file.size, dataset.row_bytes) for file in files]
        for split, files in dataset.splits.items()
    }
    assert sum(count for count, _ in rows["train"]) == 50_000
    assert sum(count for count, _ in rows["test"]) == 10_000
    assert all(rest == 0 for counts in rows.values() for _, rest in counts)


@pytest.mark.parametrize("damage", ["flip", "truncate"])
def test_a_damaged_sample_is_refused(tmp_path, monkeypatch, damage):
    content = bytearray(resources.path("samples/cifar10.npz").read_bytes())
    if damage == "flip":
        content[1000] ^= 1
    else:
        del content[-10:]
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples/cifar10.npz").write_bytes(content)
    monkeypatch.setattr(resources, "path", lambda name: tmp_path / name)
    with pytest.raises(DataError, match=r"cifar10\.npz: expected .* found .*Install"):
        data.sample("cifar10")


def test_resources_names_what_is_missing():
    with pytest.raises(DataError, match=r"samples/nothing\.npz: expected a file"):
        resources.path("samples/nothing.npz")


def test_resources_prefers_the_folder_shipped_in_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "adjoint_lib")
    for folder in (tmp_path / "data", tmp_path / "adjoint_lib/_data"):
        folder.mkdir(parents=True)
        (folder / "file").touch()
        assert resources.path("file") == folder / "file"


# Arguments.


@pytest.mark.parametrize("call", [data.load, data.sample, data.fetch])
@pytest.mark.parametrize("name", ["CIFAR-10", "cifar_10", "Cifar10"])
def test_an_unknown_name_is_answered_with_the_choices_and_the_nearest(call, name):
    with pytest.raises(InputError, match=f"'cifar10', 'cifar100', got '{name}'.*mean 'cifar10'"):
        call(name)


@pytest.mark.parametrize("name", ["mnist", "", None, 10, ["cifar10"]])
def test_a_name_that_resembles_nothing(name):
    with pytest.raises(InputError, match="expected one of 'cifar10', 'cifar100', got"):
        data.load(name)


def test_an_unknown_split():
    with pytest.raises(InputError, match=r"'train', 'test', got 'testing'.*mean 'test'"):
        data.load("cifar10", "testing")


# Where the files are looked for.


def test_the_cache_is_used(tiny, cache, no_network):
    tiny.write_files(cache / FOLDER)
    assert data.fetch("tiny") == cache / FOLDER
    assert_loads(tiny)


def test_the_last_of_two_label_bytes_counts(cache, monkeypatch, no_network):
    tiny = Tiny(label_bytes=2)
    monkeypatch.setitem(data.DATASETS, "tiny", tiny.dataset)
    tiny.write_files(cache / FOLDER)
    assert_loads(tiny)


@pytest.mark.parametrize("below", ["", FOLDER])
def test_files_in_the_users_folder_are_used_in_place(tiny, own, cache, no_network, below):
    tiny.write_files(own / below)
    assert data.fetch("tiny") == own / below
    assert_loads(tiny)
    assert not cache.exists()


def test_the_users_folder_comes_before_the_cache(tiny, own, cache, no_network):
    tiny.write_files(own)
    tiny.write_files(cache / FOLDER)
    assert data.fetch("tiny") == own


def test_a_split_can_be_loaded_without_the_other(tiny, own, no_network):
    (own / "held_out.bin").write_bytes(tiny.files["held_out.bin"])
    assert len(data.load("tiny", "test")[0]) == ROWS["held_out.bin"]


@pytest.mark.parametrize("ending", ["gz", "xz"])
def test_an_archive_in_the_users_folder_is_unpacked_into_the_cache(
    tiny, own, cache, no_network, ending
):
    (own / f"tiny.tar.{ending}").write_bytes(tar(tiny.members, ending))
    assert data.fetch("tiny", progress=False) == cache / FOLDER
    assert names_in(cache) == FULL_CACHE
    assert names_in(own) == [f"tiny.tar.{ending}"]
    (own / f"tiny.tar.{ending}").unlink()
    assert_loads(tiny)


def test_a_users_folder_that_does_not_exist_is_an_error(tiny, own, no_network):
    own.rmdir()
    with pytest.raises(DataError, match="ADJOINT_DATA: expected an existing folder, got"):
        data.load("tiny")


def test_the_default_cache_follows_the_xdg_convention(tiny, tmp_path, monkeypatch, no_network):
    monkeypatch.delenv("ADJOINT_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for value, cache in [
        (str(tmp_path / "xdg"), tmp_path / "xdg"),
        ("", tmp_path / "home/.cache"),
        ("relative/is/ignored", tmp_path / "home/.cache"),
    ]:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        tiny.write_files(cache / "adjoint_lib" / FOLDER)
        assert data.fetch("tiny") == cache / "adjoint_lib" / FOLDER


def test_a_cache_that_cannot_be_written_is_named(tiny, cache, server):
    cache.write_text("a file where a folder is expected")
    with pytest.raises(DataError, match=r"cache: expected to be able to write here.*ADJOINT_CACHE"):
        data.fetch("tiny")


# Damage on disk.


DAMAGE = {
    "truncated": (lambda content: content[:-1], "bytes, found"),
    "emptied": (lambda content: b"", "bytes, found 0"),
    "too long": (lambda content: content + b"!", "bytes, found"),
    "flipped": (
        lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
        "sha",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_in_the_cache_is_detected_and_fetch_repairs_it(tiny, cache, server, damage):
    spoil, told = DAMAGE[damage]
    tiny.write_files(cache / FOLDER)
    path = cache / FOLDER / "held_out.bin"
    data.load("tiny")  # a file that was sound once is checked again all the same
    path.write_bytes(spoil(tiny.files["held_out.bin"]))
    with pytest.raises(DataError, match=rf"held_out\.bin: expected .*{told}.*Repair") as info:
        data.load("tiny")
    assert "python -m adjoint_lib data tiny" in str(info.value)
    data.fetch("tiny", progress=False)
    assert_loads(tiny)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_of_the_user_is_reported_and_left_alone(tiny, own, no_network, damage):
    spoil, told = DAMAGE[damage]
    tiny.write_files(own)
    spoilt = spoil(tiny.files["held_out.bin"])
    (own / "held_out.bin").write_bytes(spoilt)
    for call in (data.load, data.fetch):
        with pytest.raises(DataError, match=rf"held_out\.bin: expected .*{told}.*ADJOINT_DATA"):
            call("tiny")
    assert (own / "held_out.bin").read_bytes() == spoilt


# Archives that are not what they claim to be.


def holding(tiny: Tiny, content) -> dict:
    """The members of the official archive, with `content` in place of held_out.bin."""
    members = tiny.members | {f"{FOLDER}/sound": tiny.files["held_out.bin"]}
    return members | {f"{FOLDER}/held_out.bin": content}


def special(kind: bytes, target: str = "", size: int = 0) -> tarfile.TarInfo:
    """A member called held_out.bin that is not a regular file."""
    member = link(f"{FOLDER}/held_out.bin", target, kind)
    member.size = size
    return member


HOSTILE = {
    "a symbolic link": lambda sound: special(tarfile.SYMTYPE, "/etc/passwd"),
    "a link to the sound file": lambda sound: special(tarfile.SYMTYPE, "sound", len(sound)),
    "a hard link": lambda sound: special(tarfile.LNKTYPE, f"{FOLDER}/batch_1.bin"),
    "a device": lambda sound: special(tarfile.CHRTYPE),
    "a folder": lambda sound: special(tarfile.DIRTYPE),
    "too much": lambda sound: sound + bytes(10**6),
    "too little": lambda sound: sound[:-1],
    "other bytes": lambda sound: bytes(len(sound)),
}


@pytest.mark.parametrize("content", HOSTILE)
def test_an_archive_holding_the_wrong_thing_under_a_known_name(
    tiny, own, cache, no_network, content
):
    wrong = HOSTILE[content](tiny.files["held_out.bin"])
    (own / "tiny.tar.gz").write_bytes(tar(holding(tiny, wrong)))
    with pytest.raises(DataError, match=r"held_out\.bin") as info:
        data.load("tiny")
    assert "expected" in str(info.value) and "tiny.tar.gz" in str(info.value)
    assert not (cache / FOLDER / "held_out.bin").exists()
    assert set(names_in(cache)) <= set(FULL_CACHE)


def test_an_archive_that_lacks_a_file(tiny, own, cache, no_network):
    del tiny.members[f"{FOLDER}/held_out.bin"]
    (own / "tiny.tar.gz").write_bytes(tar(tiny.members))
    with pytest.raises(DataError, match=r"tiny\.tar\.gz: expected .* found no held_out\.bin"):
        data.load("tiny")


def test_members_that_try_to_leave_the_folder_do_not(tiny, own, cache, tmp_path, no_network):
    evil = b"evil"
    members = {
        "../../escaped.bin": evil,
        str(tmp_path / "absolute.bin"): evil,
        "link": link("link", str(tmp_path), tarfile.SYMTYPE),
        "link/through_link.bin": evil,
        f"../../../{FOLDER}/batch_1.bin": tiny.files["batch_1.bin"],
        str(tmp_path / "batch_2.bin"): tiny.files["batch_2.bin"],
        f"{FOLDER}/held_out.bin": tiny.files["held_out.bin"],
    }
    (own / "tiny.tar.gz").write_bytes(tar(members))
    before = {path for path in names_in(tmp_path) if not path.startswith("cache")}
    assert_loads(tiny)  # the known files are sound wherever the archive wanted to put them
    assert names_in(cache) == FULL_CACHE
    assert {path for path in names_in(tmp_path) if not path.startswith("cache")} == before


@pytest.mark.parametrize("ending", ["gz", "xz"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "not an archive", "empty"])
def test_a_damaged_archive_in_the_users_folder(tiny, own, cache, no_network, ending, damage):
    content = tar(tiny.members, ending)
    middle = len(content) // 2
    spoilt = {
        "truncated": content[:middle],
        "flipped": content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :],
        "not an archive": b"<html>" * 100,
        "empty": b"",
    }[damage]
    (own / f"tiny.tar.{ending}").write_bytes(spoilt)
    with pytest.raises(DataError, match=rf"tiny\.tar\.{ending}"):
        data.load("tiny", "test")
    for path in cache.rglob("*.bin"):  # what was placed before the damage is sound
        assert path.read_bytes() == tiny.files[path.name]
    assert set(names_in(cache)) <= set(FULL_CACHE)


# The web.


def test_the_official_archive_is_fetched_unpacked_and_removed(tiny, cache, server):
    assert_loads(tiny)
    assert names_in(cache) == FULL_CACHE
    assert len(server.ranges) == 1


def test_a_connection_that_drops_and_stalls_ends_well(tiny, cache, server):
    server.answers = [faults.drop_after(5000), faults.stall_after(5000), faults.whole]
    assert_loads(tiny)
    assert names_in(cache) == FULL_CACHE


@pytest.mark.parametrize(
    ("answer", "told", "left"),
    [
        (faults.status(404), "404", []),
        (faults.other_body(b"<html>"), "announces 6", []),
        (faults.drop_after(0), "have 0 after 3 attempts", []),
        (faults.unannounced(bytes(10**6)), "sends more", []),
        (faults.ignore_range_and_drop_after(5000), "have 5000", ["tiny.tar.gz.part"]),
    ],
)
def test_a_failing_server_leaves_nothing_that_a_later_load_accepts(
    tiny, cache, server, answer, told, left
):
    server.answers = [answer]
    with pytest.raises(DataError, match=told) as info:
        data.load("tiny")
    assert "ADJOINT_DATA" in str(info.value) and "tiny.tar.gz" in str(info.value)
    assert names_in(cache) == left
    server.answers = [faults.whole]
    assert_loads(tiny)
    assert names_in(cache) == FULL_CACHE


def test_a_corrupted_download_is_refused(tiny, cache, server):
    server.body = tiny.archive[:9000] + bytes([tiny.archive[9000] ^ 1]) + tiny.archive[9001:]
    with pytest.raises(DataError, match=f"expected sha256 {tiny.dataset.archive.sha256}"):
        data.load("tiny")
    assert names_in(cache) == []


def test_interrupting_a_fetch_leaves_only_what_the_next_one_goes_on_from(
    tiny, cache, server, monkeypatch
):
    monkeypatch.setattr(download, "TIMEOUT", 20)
    main = threading.main_thread().ident
    part = cache / "tiny.tar.gz.part"

    def interrupt_once_arrived():
        while part.stat().st_size <= 5000:
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    server.answers = [faults.drop_after(5000), faults.stall_after(10_000, interrupt_once_arrived)]
    with pytest.raises(KeyboardInterrupt):
        data.fetch("tiny", progress=False)
    assert names_in(cache) == ["tiny.tar.gz.part"]
    arrived = part.stat().st_size
    assert 5000 < arrived <= 15_000
    server.answers = [faults.whole]
    assert_loads(tiny)
    assert server.ranges == [None, "bytes=5000-", f"bytes={arrived}-"]
    assert names_in(cache) == FULL_CACHE


def test_interrupting_the_unpacking_leaves_whole_files_only(tiny, cache, server, monkeypatch):
    class Interrupted:
        """A progress bar that is interrupted at the second file."""

        updates = 0

        def __enter__(self):
            return self

        def __exit__(self, *args):
            pass

        def update(self, count):
            self.updates += 1
            if self.updates == 2:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(data_sources, "_bar", lambda *args: Interrupted())
        with pytest.raises(KeyboardInterrupt):
            data.fetch("tiny", progress=False)
    assert names_in(cache) == [f"{FOLDER}/batch_1.bin", "tiny.tar.gz"]
    assert_loads(tiny)
    assert len(server.ranges) == 1  # the archive was here already
    assert names_in(cache) == FULL_CACHE


def test_many_fetches_at_once_make_one_download(tiny, cache, server):
    server.answers = [faults.drop_after(5000), faults.whole]
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: data.fetch("tiny", progress=False), range(8)))
    assert set(folders) == {cache / FOLDER}
    assert server.ranges == [None, "bytes=5000-"]
    assert_loads(tiny)
    assert names_in(cache) == FULL_CACHE


def test_a_process_takes_over_from_one_that_is_killed(tiny, cache, server):
    command = [sys.executable, "-c", FETCH_TINY, *map(str, HERE)]
    part = cache / "tiny.tar.gz.part"
    arrived = threading.Event()
    server.answers = [faults.stall_after(10_000, arrived.set), faults.whole]
    first = subprocess.Popen(command)
    assert arrived.wait(60)
    second = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    waiting = next((line for line in second.stderr if line.startswith("Waiting")), "")
    assert LOCK in waiting
    first.kill()
    first.wait()
    held = part.stat().st_size  # a kill may lose what was not yet written
    _, told = second.communicate(timeout=60)
    assert second.returncode == 0, told
    assert server.ranges == [None, f"bytes={held}-" if held else None]
    assert names_in(cache) == FULL_CACHE
    assert_loads(tiny)


HERE = Path(__file__).parent, Path(__file__).parents[1]
FETCH_TINY = """
import sys
sys.path[:0] = sys.argv[1:]
from test_data import Tiny, data
data.DATASETS["tiny"] = Tiny().dataset
data.fetch("tiny", progress=False)
"""


# Status.


def test_status_says_what_is_here_and_whether_it_is_sound(tiny, cache, no_network):
    def records():
        return {(r.name, r.split): r for r in data.status()}

    absent = records()
    assert {name for name, _ in absent} == {"cifar10", "cifar100", "tiny"}
    assert absent["cifar10", "sample"].ok and absent["cifar10", "sample"].source == "embedded"
    assert absent["tiny", "test"].source == "missing" and not absent["tiny", "test"].ok

    tiny.write_files(cache / FOLDER)
    (cache / FOLDER / "batch_2.bin").write_bytes(b"short")
    here = records()
    test, train = here["tiny", "test"], here["tiny", "train"]
    assert (test.source, test.ok, test.problem) == ("cache", True, None)
    assert test.bytes == len(tiny.files["held_out.bin"])
    assert test.path == str(cache / FOLDER)
    assert train.source == "cache" and not train.ok and "batch_2.bin" in train.problem
    json.dumps([vars(record) for record in data.status()])
