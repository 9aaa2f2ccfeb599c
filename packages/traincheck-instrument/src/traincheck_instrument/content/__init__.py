"""What tensors hold: read where they lie, fetched from devices, digested and described."""
