"""Tensors of every kind are described, and none is read or run."""

import os
import subprocess
import sys
import warnings

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from traincheck_instrument.content.digest import is_readable
from traincheck_instrument.encode import Encoder
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.validation import validate

pytestmark = pytest.mark.torch

DTYPES = sorted({one for one in vars(torch).values() if isinstance(one, torch.dtype)}, key=str)


class Wrapper(torch.Tensor):
    """A tensor that computes everything by code of its own, which must not run."""

    @staticmethod
    def __new__(cls, policy=None, *, own_device=False):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            (2, 3),
            dtype=torch.float16,
            dispatch_sizes_strides_policy=policy,
            dispatch_device=own_device,
        )

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(func)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(func)


class Renamed(torch.Tensor):
    """A tensor whose properties are the program's."""

    shape = property(lambda _: 1 / 0)
    dtype = property(lambda _: 1 / 0)
    device = property(lambda _: 1 / 0)
    requires_grad = property(lambda _: 1 / 0)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(func)


def unusual():
    """Return tensors that are no dense arrays, by what is told of them."""
    dense = torch.eye(4)
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    with warnings.catch_warnings():  # torch takes leave of some of them
        warnings.simplefilter("ignore")
        tensors = {
            "sparse_coo": dense.to_sparse(),
            "sparse_csr": dense.to_sparse_csr(),
            "sparse_csc": dense.to_sparse_csc(),
            "sparse_bsr": dense.to_sparse_bsr((2, 2)),
            "quantized": torch.quantize_per_tensor(dense, 0.1, 0, torch.qint8),
            "nested": torch.nested.nested_tensor(parts),
            "jagged": torch.nested.nested_tensor(parts, layout=torch.jagged),
        }
    with FakeTensorMode():
        tensors["fake"] = torch.ones(4, 4, device="cuda")
    return tensors


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_tensor_of_any_dtype_is_described(encode, dtype):
    """Also of those that torch can hold and hardly compute with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensor = torch.empty((2, 3), dtype=dtype)
    described = encode(tensor)["tensor"]

    assert described.pop("layout", None) == ("quantized" if tensor.is_quantized else None)
    assert described == {"shape": [2, 3], "dtype": str(dtype)[6:], "device": "cpu"}


@pytest.mark.parametrize(
    ("tensor", "shape"),
    [
        (torch.ones(()), []),
        (torch.ones(0, 5), [0, 5]),
        (torch.ones(4, 6)[::2, ::3], [2, 2]),
        (torch.ones(1, 3).expand(5, 3), [5, 3]),
        (torch.ones(2, dtype=torch.complex64).conj(), [2]),
        (torch._neg_view(torch.ones(2)), [2]),
    ],
    ids=["scalar", "empty", "strided", "expanded", "conjugate", "negative"],
)
def test_a_view_is_described_as_what_it_shows(encode, tensor, shape):
    """The memory behind it plays no part."""
    assert encode(tensor)["tensor"]["shape"] == shape


def test_a_gradient_requirement_is_told_only_where_there_is_one(encode):
    """Also of a parameter."""
    assert encode(torch.nn.Parameter(torch.ones(1)))["tensor"]["requires_grad"]
    assert encode([torch.ones(1, requires_grad=True)])[0]["tensor"]["requires_grad"]
    assert "requires_grad" not in encode(torch.ones(1))["tensor"]


@pytest.mark.parametrize("layout", unusual())
def test_a_tensor_that_is_no_dense_array_says_so_and_is_not_read(encode, layout):
    """Its shape has null where a size is not one number."""
    tensor = unusual()[layout]
    shapes = {"nested": [2, None, 3], "jagged": [2, None, 3]}

    described = encode(tensor)["tensor"]

    assert described["layout"] == layout
    assert described["shape"] == shapes.get(layout, [4, 4])
    assert described["device"] == ("cuda:0" if layout == "fake" else "cpu")
    assert not is_readable(tensor)


def test_a_tensor_without_content_is_described(encode):
    """The device says meta; a lazy parameter has no shape yet."""
    lazy = torch.nn.parameter.UninitializedParameter()

    assert encode(torch.ones(2, device="meta"))["tensor"]["device"] == "meta"
    assert encode(lazy)["object"]["type"] == "torch.nn.UninitializedParameter"
    assert not is_readable(torch._efficientzerotensor((2,)))
    assert not is_readable(torch._to_functional_tensor(torch.ones(2)))


@pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.grad], ids=["vmap", "grad"])
def test_a_tensor_inside_a_transform_is_described_and_not_read(encode, transform):
    """What the function sees has the shape of one example, and no memory of its own."""
    seen = []

    def function(value):
        seen.append((encode(value)["tensor"], is_readable(value)))
        return value.sum()

    transform(function)(torch.ones((2, 3) if transform is torch.func.vmap else 3))

    assert [described["shape"] for described, _ in seen] == [[3]]
    assert [described["layout"] for described, _ in seen] == ["functorch"]
    assert not any(readable for _, readable in seen)


def test_the_code_of_a_subclass_does_not_run(encode):
    """Properties, functions and dispatch of the program raise; what torch knows is told."""
    described = {"shape": [2, 3], "dtype": "float16", "device": "cpu"}

    assert encode(Wrapper()) == {"tensor": described}
    assert encode(Wrapper("strides")) == {"tensor": described}
    assert encode(Wrapper("sizes"))["object"]["type"].endswith("Wrapper")
    assert encode(Wrapper(own_device=True))["object"]["type"].endswith("Wrapper")
    assert encode(torch.ones(2).as_subclass(Renamed))["tensor"]["shape"] == [2]
    assert not is_readable(Wrapper())


def test_a_symbolic_size_is_not_bound_to_its_number():
    """Reading it would make what is traced hold for this size only."""
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext  # noqa: PLC0415  it is slow to import

    environment = ShapeEnv()
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
    mode = FakeTensorMode(shape_env=environment)
    tensor = mode.from_tensor(torch.ones(5, 3), symbolic_context=context)

    with torch._C.DisableTorchFunction():
        described = Encoder()(tensor)["tensor"]

    assert described["shape"] == [None, 3]
    assert not environment.guards


RANK = """
import sys
import torch
from torch import distributed
from torch.nn import Parameter
from traincheck_instrument.encode import Encoder
from traincheck_trace_schema.codec import dumps

encoder = Encoder()
encoder(torch.ones(2))
assert "torch.distributed.tensor" not in sys.modules

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

rank, store = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
whole = torch.arange(15.0).reshape(5, 3)
values = {
    "shard": distribute_tensor(whole, mesh, [Shard(0)]),
    "replicate": Parameter(distribute_tensor(whole, mesh, [Replicate()])),
    "partial": DTensor.from_local(torch.ones(2), mesh, [Partial("sum")]),
}
distributed.barrier()
if rank == 1:  # the other encodes nothing: had this one to talk to it, it would wait for good
    with torch._C.DisableTorchFunction():
        print(dumps({name: encoder(value) for name, value in values.items()}))
distributed.barrier()
distributed.destroy_process_group()
"""


@pytest.mark.ranks
def test_a_distributed_tensor_tells_its_part_and_the_whole_without_communicating(tmp_path):
    """Shape of the local part, shape of the whole, and how it is spread."""
    store = tmp_path / "store"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(store)],
            env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [rank.communicate(timeout=120) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    values = loads(outputs[1][0])
    common = {"dtype": "float32", "device": "cpu"}

    assert values["shard"]["tensor"] == {
        **common,
        "shape": [2, 3],
        "global_shape": [5, 3],
        "placements": ["Shard(0)"],
    }
    assert values["replicate"]["tensor"] == {
        **common,
        "shape": [5, 3],
        "requires_grad": True,
        "global_shape": [5, 3],
        "placements": ["Replicate()"],
    }
    assert values["partial"]["tensor"]["placements"] == ["Partial(sum)"]
    for value in values.values():
        place = {"thread": 0, "seq": 0, "step": 0}
        record = {"kind": "call_end", **place, "id": 0, "function": "f", "result": value}
        validate("trace", record)
