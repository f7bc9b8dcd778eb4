"""Files of data sets: where they are found, how they are downloaded, what is refused."""

import gzip
import hashlib
import json
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from rmsim.cli import run
from rmsim.data import catalogue, features, load, mnist, synthetic
from rmsim.data.download import VARIABLE, DownloadError, fetch
from rmsim.data.mnist import load_images
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from tests.idx_files import idx_bytes

HTTP = ("http",)


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds the data of this machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Make mnist a set of five images, and return its files."""
    images, labels = np.arange(80).reshape(5, 4, 4), np.arange(5)
    files = {
        "train-images-idx3-ubyte": idx_bytes(images),
        "train-labels-idx1-ubyte": idx_bytes(labels),
        "t10k-images-idx3-ubyte": idx_bytes(images[:2]),
        "t10k-labels-idx1-ubyte": idx_bytes(labels[:2]),
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    monkeypatch.setitem(mnist.IMAGE_SETS, "mnist", replace(mnist.MNIST, sha256=sums))
    return files


def _put(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


# Finding


@pytest.mark.parametrize("place", ["mnist", "MNIST/raw", "."])
def test_images_are_found_beneath_a_folder(
    tmp_path: Path, tiny: dict[str, bytes], place: str
) -> None:
    _put(tmp_path / "data" / place, tiny)
    data = load_images("mnist", tmp_path / "data")
    assert data.train.inputs.shape == (5, 16)
    assert data.train.inputs[4, 15] == np.float32(79) / np.float32(255)
    assert data.test.labels.tolist() == [0, 1]
    assert Path(data.source) == tmp_path / "data" / place


def test_plain_and_gzip_files_and_the_variable(
    tmp_path: Path, tiny: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(tmp_path / "plain", tiny)
    _put(tmp_path / "gzip", {f"{name}.gz": gzip.compress(tiny[name]) for name in tiny})
    plain = load_images("mnist", tmp_path / "plain")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gzip"))
    assert load_images("mnist").checksum == plain.checksum


def test_folder_of_the_system_is_used(
    tmp_path: Path, tiny: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(tmp_path / "system", tiny)
    known = replace(mnist.IMAGE_SETS["mnist"], system=(tmp_path / "system",))
    monkeypatch.setitem(mnist.IMAGE_SETS, "mnist", known)
    assert load_images("mnist", download=False).source == str(tmp_path / "system")


def test_nowhere_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnreadableDataError) as caught:
        load_images("fashion-mnist", download=False)
    text = str(caught.value)
    for part in (
        "fashion-mnist is nowhere",
        "/usr/share/datasets/fashion-mnist",
        str(tmp_path / "cache" / "rmsim"),
        "RMSIM_DATA is not set",
        "install Debian's package dataset-fashion-mnist",
        "train-images-idx3-ubyte",
        "--data DIR",
        "rmsim data fetch fashion-mnist",
    ):
        assert part in text
    with pytest.raises(UnreadableDataError, match=f"looked in {tmp_path}"):
        load_images("mnist", tmp_path)


def test_files_of_another_set_are_refused(tmp_path: Path, tiny: dict[str, bytes]) -> None:
    _put(tmp_path, tiny)
    with pytest.raises(UnreadableDataError, match="train-images-idx3-ubyte is not the published"):
        load_images("fashion-mnist", tmp_path)
    with pytest.raises(InvalidInputError, match="name must be mnist or fashion-mnist, got emnist"):
        load_images("emnist")


# Downloading


@dataclass
class Server:
    """A server on this machine, with the faults that servers have."""

    files: dict[str, bytes]
    address: str = ""
    broken: set[str] = field(default_factory=set)  # breaks off in the middle, once
    ranges: bool = True
    length: str | None = None  # what Content-Length says, if not the truth
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@contextmanager
def _serving(files: dict[str, bytes]) -> Iterator[Server]:
    state = Server(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            span = self.headers.get("Range")
            state.asked.append((self.path, span))
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("Location", "ftp://127.0.0.1/file")
                self.end_headers()
                return
            content = state.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            start = int(span.removeprefix("bytes=").removesuffix("-")) if span else 0
            if start and start >= len(content):
                self.send_error(416)
                return
            if not state.ranges:
                start = 0
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", state.length or str(len(content) - start))
            self.end_headers()
            body = content[start:]
            if self.path in state.broken:
                state.broken.remove(self.path)
                body = body[: len(body) // 2]
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _accept(path: Path) -> None:
    pass


def test_a_broken_download_leaves_no_file_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    content, target = bytes(range(256)) * 400, tmp_path / "folder" / "file"
    shares: list[float] = []
    with _serving({"/file": content}) as server:
        server.broken.add("/file")
        with pytest.raises(DownloadError, match=f"/file broke off after 51200 of {len(content)}"):
            fetch(f"{server.address}/file", target, _accept, schemes=HTTP)
        assert not target.exists()
        fetch(f"{server.address}/file", target, _accept, shares.append, schemes=HTTP)
        assert server.asked == [("/file", None), ("/file", "bytes=51200-")]
        fetch(f"{server.address}/file", target, _accept, schemes=HTTP)  # is there: nothing asked
        assert len(server.asked) == 2
    assert target.read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == ["file"]
    assert shares[-1] == 1
    assert shares == sorted(shares)


def test_servers_without_ranges_send_all_again(tmp_path: Path) -> None:
    content, target = bytes(range(256)) * 400, tmp_path / "file"
    with _serving({"/file": content}) as server:
        server.ranges = False
        server.broken.add("/file")
        with pytest.raises(DownloadError):
            fetch(f"{server.address}/file", target, _accept, schemes=HTTP)
        fetch(f"{server.address}/file", target, _accept, schemes=HTTP)
    assert target.read_bytes() == content


def test_a_download_killed_before_its_check_is_only_checked(tmp_path: Path) -> None:
    content, target = b"all of it", tmp_path / "file"
    with _serving({"/file": content}) as server:
        url = f"{server.address}/file"

        def killed(path: Path) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fetch(url, target, killed, schemes=HTTP)
        assert not target.exists()
        fetch(url, target, _accept, schemes=HTTP)
    assert target.read_bytes() == content


def test_wrong_content_is_deleted(tmp_path: Path) -> None:
    def refuse(path: Path) -> None:
        raise UnreadableDataError("not this")

    with _serving({"/file": b"page of a proxy"}) as server:
        url = f"{server.address}/file"
        with pytest.raises(UnreadableDataError, match=f"what {url} sends is wrong: not this"):
            fetch(url, tmp_path / "file", refuse, schemes=HTTP)
    assert list(tmp_path.iterdir()) == []


def test_two_downloads_at_once_give_one_file(tmp_path: Path) -> None:
    content, target = bytes(range(256)) * 4000, tmp_path / "file"
    with _serving({"/file": content}) as server:
        url = f"{server.address}/file"
        workers = [
            threading.Thread(target=fetch, args=(url, target, _accept), kwargs={"schemes": HTTP})
            for _ in range(4)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(server.asked) == 1
    assert target.read_bytes() == content


@pytest.mark.parametrize("length", ["abc", "-5", "1e3", "9" * 40, "٣"])
def test_a_length_that_is_no_number_is_told(length: str, tmp_path: Path) -> None:
    with _serving({"/file": b"content"}) as server:
        server.length = length.encode().decode("latin-1")
        with pytest.raises(
            DownloadError, match=r"/file answers with Content-Length .* not a number of bytes"
        ):
            fetch(f"{server.address}/file", tmp_path / "file", _accept, schemes=HTTP)
    assert not (tmp_path / "file").exists()


def test_a_server_that_never_ends_does_not_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rmsim.data.download._MOST_BYTES", 100_000)
    with (
        _serving({"/file": bytes(1 << 20)}) as server,
        pytest.raises(DownloadError, match="/file sends more than the 100000 bytes allowed"),
    ):
        fetch(f"{server.address}/file", tmp_path / "file", _accept, schemes=HTTP)
    assert all(path.stat().st_size <= 100_000 for path in tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["a symbolic link", "a pipe", "a folder"])
def test_nothing_is_downloaded_into_what_was_put_in_the_place_of_the_part(
    kind: str, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    with _serving({"/file": b"content"}) as server:
        url, folder = f"{server.address}/file", tmp_path / "cache"
        folder.mkdir()
        part = folder / f"file.{zlib.crc32(url.encode()):08x}.part"
        if kind == "a symbolic link":
            part.symlink_to(precious)
        elif kind == "a pipe":
            os.mkfifo(part)
        else:
            part.mkdir()
        with pytest.raises(DownloadError, match=rf"\.part is {kind} and .* remove it"):
            fetch(url, folder / "file", _accept, schemes=HTTP)
        assert server.asked == []
    assert precious.read_text() == "kept"
    assert not (folder / "file").exists()


def test_only_https_is_fetched(tmp_path: Path) -> None:
    with _serving({}) as server:
        with pytest.raises(DownloadError, match="is not fetched: only https is allowed"):
            fetch(f"{server.address}/file", tmp_path / "file", _accept)
        assert server.asked == []
        with pytest.raises(DownloadError, match="/file answers 404 Not Found"):
            fetch(f"{server.address}/file", tmp_path / "file", _accept, schemes=HTTP)
        with pytest.raises(
            DownloadError, match=r"ftp://127\.0\.0\.1/file is not fetched: only http is allowed"
        ):
            fetch(f"{server.address}/moved", tmp_path / "file", _accept, schemes=HTTP)
    with pytest.raises(DownloadError, match=r"cannot be downloaded: .*refused"):
        fetch(f"{server.address}/file", tmp_path / "file", _accept, schemes=HTTP)
    assert all(url.startswith("https://") for url in mnist.MNIST.mirrors + mnist.FASHION.mirrors)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with _serving({"/file": b"x"}) as server, pytest.raises(DownloadError) as caught:
        fetch(f"{server.address}/file", tmp_path / "file" / "data", _accept, schemes=HTTP)
    assert f"{tmp_path}/file/data cannot be written: " in str(caught.value)


def test_images_come_from_the_second_mirror_if_the_first_lies(
    tmp_path: Path, tiny: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = {name: gzip.compress(content) for name, content in tiny.items()}
    files = {f"/good/{name}.gz": content for name, content in packed.items()}
    files |= {f"/bad/{name}.gz": gzip.compress(b"<html>") for name in packed}
    shares: list[float] = []
    with _serving(files) as server:
        mirrors = (f"{server.address}/bad/", f"{server.address}/good/")
        known = replace(mnist.IMAGE_SETS["mnist"], mirrors=mirrors)
        monkeypatch.setitem(mnist.IMAGE_SETS, "mnist", known)
        data = load_images("mnist", progress=shares.append, schemes=HTTP)
        asked = len(server.asked)
        assert asked == 8
        assert load_images("mnist", schemes=HTTP).checksum == data.checksum  # from the cache
        assert len(server.asked) == asked
    assert len(data.train) == 5
    assert shares[-1] == 1
    assert Path(data.source) == tmp_path / "cache" / "rmsim" / "mnist"


def test_a_truncated_and_a_wrong_download_are_told(
    tiny: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "train-images-idx3-ubyte"
    with _serving({f"/{name}.gz": gzip.compress(tiny[name])}) as server:
        server.broken.add(f"/{name}.gz")
        known = replace(mnist.IMAGE_SETS["mnist"], mirrors=(f"{server.address}/",))
        monkeypatch.setitem(mnist.IMAGE_SETS, "mnist", known)
        with pytest.raises(UnreadableDataError, match=r"nowhere .* broke off after .* RMSIM_DATA="):
            load_images("mnist", schemes=HTTP)
        server.files[f"/{name}.gz"] = gzip.compress(tiny[name][:-1])
        with pytest.raises(UnreadableDataError, match=r"sends is wrong: .*sha256 of its content"):
            load_images("mnist", schemes=HTTP)


# The synthetic set, the catalogue and the commands


def test_synthetic_set_is_reproducible_and_has_its_flips() -> None:
    data = synthetic(classes=4, width=200, train=400, test=40, flips=0.1, seed=5)
    assert data.checksum == synthetic(4, 200, 400, 40, 0.1, 5).checksum
    assert data.checksum != synthetic(4, 200, 400, 40, 0.1, 6).checksum
    clean = synthetic(4, 200, 4, 4, 0, 5)
    differing = data.train.inputs != clean.train.inputs[data.train.labels]
    # 80,000 spins: five standard deviations.
    assert abs(differing.mean() - 0.1) < 5 * (0.1 * 0.9 / differing.size) ** 0.5
    with pytest.raises(InvalidInputError, match=r"flips must be a probability from 0 to 0\.5"):
        synthetic(flips=0.6)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="dataset must be one of entangled-mnist, mnist"):
        load("cifar")


def _json(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    document: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return document


def test_commands_list_fetch_and_check(
    tmp_path: Path, tiny: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["data", "list", "--json"]) == 0
    places = {row["name"]: row["path"] for row in _json(capsys)}
    assert list(places) == list(catalogue.CATALOGUE)
    assert places["mnist"] is None
    assert places["entangled-mnist"]
    assert run(["data", "check", "--json"]) == 0
    statuses = {row["name"]: row["status"] for row in _json(capsys)}
    assert statuses["entangled-mnist"] == "ok"
    assert statuses["mnist"] == "not here"
    assert run(["data", "fetch", "synthetic"]) == 0
    assert "noisy" not in capsys.readouterr().err


def test_commands_say_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [*mnist.MNIST.sha256]
    _put(tmp_path, {name: idx_bytes(np.zeros((1, 1, 1))) for name in names})
    assert run(["data", "check", "mnist", "--data", str(tmp_path), "--json"]) == 1
    (row,) = _json(capsys)
    assert row["status"] == "damaged or missing"
    assert "is not the published file" in row["problem"]
    assert run(["data", "fetch", "mnist", "--data", str(tmp_path)]) == 1
    assert "is not the published file" in capsys.readouterr().err
    for command in ("list", "check"):
        assert run(["data", command, "--data", str(tmp_path / "nowhere")]) == 2
        assert "data must be a folder that exists, got" in capsys.readouterr().err
    assert run(["data", "fetch", "cifar"]) == 2
    assert "dataset must be one of" in capsys.readouterr().err
    assert run(["data", "check", features.NAME]) == 1
    assert "nowhere" in capsys.readouterr().out
