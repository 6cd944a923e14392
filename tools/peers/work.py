"""What the Python peers do alike."""


def tokens_of(number, count):
    """Tokens that no other number has; as in tools/benchmarks/prefix_work.hpp."""
    state, tokens = 0x9E3779B9 * (number + 1) % 2**32, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        tokens.append(state >> 1)
    tokens[0] = number
    return tokens


class Sum:
    """Of numbers in the order in which they came; as in tools/peers/ours.hpp."""

    def __init__(self):
        self.value, self.index = 0, 0

    def add(self, numbers):
        for number in numbers:
            self.value += number * (self.index % 8191 + 1)
            self.index += 1
