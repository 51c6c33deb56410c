import hashlib
import http.server
import pickle
import threading
from typing import ClassVar

import h5py
import numpy as np
import pytest

from conceptnb.embeddings import shapes3d as s3


@pytest.fixture(scope="module")
def published_path(tmp_path_factory, published_labels):
    """A file with the published layout; only the first 3,000 images are written."""
    path = tmp_path_factory.mktemp("data") / "3dshapes.h5"
    with h5py.File(path, "w") as file:
        images = file.create_dataset(
            "images", (s3.N_IMAGES, 64, 64, 3), np.uint8, chunks=(50, 64, 64, 3), compression="gzip"
        )
        index = np.arange(s3.N_IMAGES)
        images[:3000, 0, 0, :] = np.stack([index % 251, index % 241, index % 239], axis=1)[:3000]
        file["labels"] = published_labels(s3.index_to_factors(index))
    return path


def test_both_sources_give_images_in_the_order_asked_for(published_path):
    index = np.array([2999, 17, 0, 17, 1200, 1201])
    with s3.PublishedShapes(published_path) as published:
        rendered = s3.RenderedShapes(16)
        images = published.images(index)
        assert images.shape == (6, 64, 64, 3)
        np.testing.assert_array_equal(images[:, 0, 0, 0], index % 251)  # in the order asked for
        with pytest.raises(ValueError, match="480000"):
            published.images([s3.N_IMAGES])
    assert rendered.images(index).shape == (6, 16, 16, 3)


def _with(**data):
    def write(path):
        with h5py.File(path, "w") as file:
            for key, (shape, dtype) in data.items():
                file.create_dataset(key, shape, dtype)

    return write


IMAGES = ((s3.N_IMAGES, 64, 64, 3), np.uint8)
LABELS = ((s3.N_IMAGES, 6), np.float64)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_bytes(b"not a data file"), "not a readable HDF5"),
        (_with(labels=LABELS), "no data set 'images'"),
        (_with(images=IMAGES), "no data set 'labels'"),
        (_with(images=((10, 64, 64, 3), np.uint8), labels=LABELS), "must have shape"),
        (_with(images=(IMAGES[0], np.float32), labels=LABELS), "type uint8"),
        (_with(images=IMAGES, labels=LABELS), "floor_hue|scale"),  # all labels zero
    ],
)
def test_another_file_is_refused(tmp_path, write, message):
    path = tmp_path / "file.h5"
    write(path)
    with pytest.raises(ValueError, match=message):
        s3.PublishedShapes(path)


@pytest.mark.parametrize(
    ("column", "label", "name"), [(3, 0.8, "scale"), (2, np.nan, "object_hue")]
)
def test_labels_off_the_grid_are_refused(tmp_path, published_labels, column, label, name):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("images", *IMAGES)
        labels = published_labels(s3.index_to_factors(np.arange(s3.N_IMAGES)))
        labels[77, column] = label
        file["labels"] = labels
    with pytest.raises(ValueError, match=f"labels of {name}"):
        s3.PublishedShapes(path)


def test_another_process_reads_the_same_file(published_path):
    with s3.PublishedShapes(published_path) as here:
        there = pickle.loads(pickle.dumps(here))
        np.testing.assert_array_equal(there.images([5]), here.images([5]))
        there.close()


def test_labels_in_another_order_are_refused(tmp_path, published_labels):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("images", *IMAGES)
        labels = published_labels(s3.index_to_factors(np.arange(s3.N_IMAGES)))
        file["labels"] = labels[::-1]
    with pytest.raises(ValueError, match="published order"):
        s3.PublishedShapes(path)


def test_a_missing_file_says_how_to_fetch_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="download"):
        s3.PublishedShapes(tmp_path / "none.h5")


CONTENT = np.random.default_rng(0).bytes(300_000)


class _Server(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT with ranges, and breaks off the first answer after 100,000 bytes."""

    requests: ClassVar[list[str | None]] = []
    break_off = True
    ranges = True

    def do_GET(self):
        asked = self.headers.get("Range")
        type(self).requests.append(asked)
        start = int(asked.split("=")[1].rstrip("-")) if asked and self.ranges else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        end = 100_000 if self.break_off else len(CONTENT)
        type(self).break_off = False
        self.wfile.write(CONTENT[start:end])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    _Server.requests, _Server.break_off, _Server.ranges = [], True, True
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/3dshapes.h5"
        running.shutdown()


SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_goes_on(server, tmp_path, ranges):
    _Server.ranges = ranges
    fetch = {"directory": tmp_path, "url": server, "sha256": SHA256}
    with pytest.raises(OSError, match=r"[Cc]onnection|Incomplete"):
        s3.download(**fetch)
    assert s3.download(**fetch).read_bytes() == CONTENT
    first, second = _Server.requests
    assert first is None
    assert second is not None and 0 < int(second.split("=")[1][:-1]) <= 100_000
    s3.download(**fetch)
    assert len(_Server.requests) == 2  # it is there and right


def test_a_wrong_checksum_is_refused(server, tmp_path):
    _Server.break_off = False
    with pytest.raises(ValueError, match="does not match"):
        s3.download(tmp_path, url=server, sha256="0" * 64)
    assert not (tmp_path / "3dshapes.h5").exists()
