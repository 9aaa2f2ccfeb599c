"""A relation of one's own: a function always returns a single tensor."""

from traincheck_relations.per_call import PerCallRelation


class TensorResultRelation(PerCallRelation):
    """A call of a function returns one tensor, and nothing else."""

    name = "TensorResultRelation"
    claim = "returns one tensor"
    needs_result = True

    def holds(self, call, end):  # noqa: ARG002  the interface
        """Whether the result that was recorded is a tensor."""
        return isinstance(end.get("result"), dict) and "tensor" in end["result"]
