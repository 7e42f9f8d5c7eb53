"""The package without PyTorch: nothing imports it before it is used, and the message says how."""

import subprocess
import sys

LIBRARIES = ("torch", "transformers", "tokenizers", "huggingface_hub", "sentence_transformers")


def run(code):
    """Run a program; return what it writes."""
    command = [sys.executable, "-W", "error::ImportWarning", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_nothing_is_imported_before_a_start():
    found = run(
        "import sys\n"
        "import sklearn_xc, sklearn_xc.embedding.encoders\n"
        "from sklearn.base import clone\n"
        "from sklearn_xc.embedding.encoders import ENCODERS, TransformerEncoder\n"
        "encoder = clone(TransformerEncoder(max_length=20)).set_params(pooling='cls')\n"
        "assert repr(encoder) == \"TransformerEncoder(max_length=20, pooling='cls')\"\n"
        "assert ENCODERS['transformer']().get_params()['pooling'] is None\n"
        "import pickle\n"
        "assert pickle.loads(pickle.dumps(encoder)).max_length == 20\n"
        f"print([name for name in {LIBRARIES} if name in sys.modules])\n"
    )
    assert found == "[]\n"


def test_what_to_install():
    found = run(
        "import sys\n"
        "class Missing:\n"
        "    @staticmethod\n"
        "    def find_spec(name, *others):\n"
        f"        if name in {LIBRARIES}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing)\n"
        "import numpy as np\n"
        "from sklearn_xc.embedding.encoders import TransformerEncoder\n"
        "for model in ('sentence-transformers/all-MiniLM-L6-v2', 'neither/here'):\n"
        "    for call in ('start', 'default_dim'):\n"
        "        encoder = TransformerEncoder(model)\n"
        "        texts = np.array(['red', 'car'], object)\n"
        "        try:\n"
        "            encoder.start(texts, 8, 0) if call == 'start' else encoder.default_dim()\n"
        "        except ImportError as error:\n"
        "            print(error)\n"
    )
    lines = found.splitlines()
    assert len(lines) == 4
    for line in lines:
        assert line.startswith("TransformerEncoder needs ")
        assert 'pip install "sklearn-xc[transformer]"' in line
        assert "encoder='bag' needs nothing" in line
