"""Names that people use without thinking where they come from: `np`, `Path`, `defaultdict`.

Data for two readers: `rl py` imports them, and its hints name the nearest of them. A module that
can be imported under the name itself always comes first.
"""

from __future__ import annotations

ALIASES = {
    "ET": "xml.etree.ElementTree",
    "F": "torch.nn.functional",
    "dt": "datetime",
    "go": "plotly.graph_objects",
    "jnp": "jax.numpy",
    "mp": "multiprocessing",
    "mpl": "matplotlib",
    "nn": "torch.nn",
    "np": "numpy",
    "nx": "networkx",
    "optim": "torch.optim",
    "osp": "os.path",
    "pa": "pyarrow",
    "pd": "pandas",
    "pl": "polars",
    "plt": "matplotlib.pyplot",
    "pq": "pyarrow.parquet",
    "px": "plotly.express",
    "sns": "seaborn",
    "sp": "scipy",
    "tf": "tensorflow",
    "xr": "xarray",
}
"""A name, and the module it stands for."""

_FROM = {
    "PIL": "Image",
    "collections": "Counter OrderedDict defaultdict deque namedtuple",
    "concurrent.futures": "ProcessPoolExecutor ThreadPoolExecutor",
    "contextlib": "contextmanager redirect_stdout suppress",
    "copy": "deepcopy",
    "dataclasses": "asdict astuple dataclass field replace",
    "datetime": "date timedelta timezone",
    "decimal": "Decimal",
    "einops": "einsum rearrange",
    "enum": "Enum IntEnum auto",
    "fractions": "Fraction",
    "functools": "cache cached_property lru_cache partial reduce",
    "io": "BytesIO StringIO",
    "itertools": "accumulate batched chain combinations count cycle groupby islice pairwise"
    " permutations product repeat starmap takewhile zip_longest",
    "math": "ceil cos exp floor gcd inf isclose isnan log log10 log2 nan pi prod sin sqrt tan",
    "operator": "attrgetter itemgetter",
    "pathlib": "Path PurePath",
    "shlex": "quote",
    "statistics": "mean median stdev",
    "tempfile": "NamedTemporaryFile TemporaryDirectory mkdtemp",
    "textwrap": "dedent",
    "threading": "Lock Thread",
    "time": "perf_counter sleep",
    "torch.utils.data": "DataLoader Dataset TensorDataset",
    "transformers": "AutoConfig AutoModel AutoModelForCausalLM AutoTokenizer",
    "types": "SimpleNamespace",
    "typing": "Any Callable Literal NamedTuple Optional TypedDict Union",
    "urllib.parse": "urlencode urljoin urlparse",
    "urllib.request": "urlopen",
    "uuid": "uuid4",
}
MEMBERS = {name: module for module, names in _FROM.items() for name in names.split()}
"""A name, and the module that has it."""

OF_THE_CLASS = {
    "datetime": ("now", "today", "utcnow", "strptime", "fromtimestamp", "fromisoformat", "combine",
                 "utcfromtimestamp", "fromordinal"),
}  # fmt: skip
"""Modules with a class of the same name, and what is asked of the class only."""
