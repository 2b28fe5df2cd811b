#!/usr/bin/env python3
"""The Python candidate's own parts, called directly.

    python3 candidate_test.py SOURCE_ROOT
"""

import array
import ctypes
import importlib.machinery
import importlib.util
import os
import platform
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

import torch


def load_program():
    path = sys.argv[1] + "/worker/candidate/grove-candidate-python"
    loader = importlib.machinery.SourceFileLoader("grove_candidate_python", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


PROGRAM = load_program()


def on_cpu():
    return PROGRAM.Program(None, PROGRAM.CpuDevice(torch), torch)


class Kept(torch.nn.Module):
    """Returns one of `count` buffers that it keeps, in turns; as a new tensor of its memory where `views`."""

    def __init__(self, count, views=False):
        super().__init__()
        self.buffers, self.views, self.calls = [torch.empty(8) for _ in range(count)], views, 0

    def forward(self, x):
        buffer = self.buffers[self.calls % len(self.buffers)]
        self.calls += 1
        torch.mul(x, 2, out=buffer)
        return (buffer.view(8), [x.sum()]) if self.views else buffer


class Runs(unittest.TestCase):
    """Timed runs: all calls, then the answer, then the outputs."""

    def run_all(self, model, slots=12, runs=((0,), tuple(range(8)), tuple(range(12))), told=False):
        """`told`: it also says where results lie, and is asked for copies all the same."""
        sent = []
        program = PROGRAM.Program(types.SimpleNamespace(send=sent.append), PROGRAM.CpuDevice(torch), torch)
        program.model = model
        program.slots = [([torch.rand(8)], [torch.full((8,), float("nan")), torch.full((), float("nan"))])
                         for _ in range(slots)]
        program.inputs = [arguments for arguments, _ in program.slots]
        program.result_places = memoryview(bytearray(8 * 2 * slots)).cast("Q") if told else None
        for order in runs:
            for arguments, places in program.slots:
                arguments[0].uniform_()
                for place in places:
                    place.fill_(float("nan"))
            program.run({"slots": list(order), "store": "later"})
            self.assertEqual(sent[-1]["type"], "done")
            self.assertEqual(len(sent[-1]["claimed_ns"]), 1)
            wanted = [arguments[0] * 2 for arguments, _ in program.slots]
            for arguments, _ in program.slots:
                arguments[0].fill_(float("nan"))  # as the judge takes them away at the answer
            program.store_kept({"slots": list(order)})
            for index in order:
                self.assertTrue(torch.equal(program.slots[index][1][0], wanted[index]), (order, index))
        return program

    def noted(self, result, places, calls=3):
        """What lies at the addresses that are told of `calls` calls which return it, a new one each, and what is said of
        the last."""
        sent, made = [], []
        program = PROGRAM.Program(types.SimpleNamespace(send=sent.append), PROGRAM.CpuDevice(torch), torch)
        program.result_places = memoryview(bytearray(8 * calls * len(places) + 8)).cast("Q")
        program.model = lambda: made.append(result()) or made[-1]
        program.slots, program.inputs = [([], places)] * calls, [[]] * calls
        program.run({"slots": list(range(calls)), "store": "later"})
        self.assertEqual(program.result_places[calls * len(places)], 0)
        lying = []
        for i, address in enumerate(program.result_places[: calls * len(places)]):
            place = places[i % len(places)]
            size = place.numel() * place.element_size()
            lying.append(address and torch.frombuffer(bytearray(ctypes.string_at(address, size)), dtype=place.dtype)
                         .view(place.shape))
        return lying, made, sent[-1].get("outputs")

    def test_results_can_be_practised_before_any_run(self):
        class Timed(PROGRAM.CpuDevice):
            begun = False

            def stretch(self, function, arguments):
                self.begun = True
                return super().stretch(function, arguments)

            def finish(self):
                if not self.begun:  # as events of a GPU that nobody has recorded
                    raise ValueError("both events must be recorded")
                return super().finish()

        sent = []
        program = PROGRAM.Program(types.SimpleNamespace(send=sent.append), Timed(torch), torch)
        program.regions = [torch.zeros(16, dtype=torch.uint8)]
        program.result_places = memoryview(bytearray(8)).cast("Q")
        program.practise(1, [[0, 0, 16]])
        self.assertEqual(sent[-1]["type"], "done")
        self.assertEqual(ctypes.string_at(program.result_places[0], 16), struct.pack("4f", 1, 1, 1, 1))
        program.store_practised()
        self.assertEqual(program.regions[0].view(torch.float32).tolist(), [1, 1, 1, 1])

    def test_what_lies_where_the_judge_cannot_read_it_is_copied_to_its_slot(self):
        class Elsewhere(PROGRAM.CpuDevice):
            kind = "cuda"

            def places(self, addresses, channel):
                return array.array("Q", [address if i % 2 == 0 else 0 for i, address in enumerate(addresses)])

        sent, made = [], []
        program = PROGRAM.Program(types.SimpleNamespace(send=sent.append), Elsewhere(torch), torch)
        program.result_places = memoryview(bytearray(8 * 6)).cast("Q")
        program.model = lambda: made.append((torch.rand(3), torch.rand(4))) or made[-1]
        program.slots = [([], [torch.zeros(3), torch.zeros(4)]) for _ in range(3)]
        program.note([2, 0, 1], [program.model() for _ in range(3)])
        self.assertEqual(list(program.result_places)[1::2], [PROGRAM.IN_ITS_SLOT] * 3)
        self.assertEqual(list(program.result_places)[::2], [first.data_ptr() for first, _ in made])
        for index, (_, second) in zip([2, 0, 1], made):
            self.assertTrue(torch.equal(program.slots[index][1][1], second))
            self.assertEqual(program.slots[index][1][0].abs().sum(), 0)
        # What is of another shape stays nowhere.
        program.note([0], [(torch.rand(3), torch.rand(5))])
        self.assertEqual(program.result_places[1], 0)

    def test_the_judge_is_told_where_each_result_lies(self):
        one, two = [torch.empty(3, 5)], [torch.empty(4), torch.empty((), dtype=torch.float64)]
        lying, made, outputs = self.noted(lambda: torch.rand(3, 5), one)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(lying, made)))
        self.assertIsNone(outputs)
        for wrap in (tuple, list, lambda values: {"a": values[0], "b": [values[1]]}):
            for number in (lambda: torch.rand((), dtype=torch.float64), lambda: float(torch.rand(()))):
                lying, made, outputs = self.noted(lambda: wrap((torch.rand(4), number())), two)
                flat = [torch.as_tensor(v) for result in made for v in PROGRAM.flatten(result, torch, [])]
                self.assertEqual([v.double().tolist() for v in lying], [v.double().tolist() for v in flat])

    def test_what_lies_nowhere_or_is_not_written_out_is_not_told_as_if_it_did(self):
        one = [torch.empty(4)]
        for wrong in (lambda: torch.rand(4).to_sparse(), lambda: torch.empty(4, device="meta"), lambda: "text",
                      lambda: None, lambda: []):
            lying, _, outputs = self.noted(wrong, one)
            self.assertEqual(lying, [0, 0, 0], wrong())
            self.assertIsNotNone(outputs)
        for lazy in (lambda: torch.rand(8)[::2], lambda: torch.rand(1).expand(4)):
            lying, made, outputs = self.noted(lazy, one)
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(lying, made[3:])), "copied within the run")
        lying, made, _ = self.noted(lambda: torch.randn(4, dtype=torch.complex64).conj(), [torch.empty(4, dtype=torch.complex64)])
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(lying, made[3:])))
        _, _, outputs = self.noted(lambda: torch.rand(4).double(), one)
        self.assertEqual(outputs, [{"dtype": "float64", "shape": [4], "device": "cpu"}])
        _, _, outputs = self.noted(lambda: torch.rand(2, 2), one)
        self.assertEqual(outputs[0]["shape"], [2, 2])

    def in_steps(self, model, orders=((0, 1, 2), (2, 0)), input_bytes=512, output_bytes=1024, asleep=False):
        """Gives steps as the judge does: what each gave, as [order][step] of the bytes of its outputs."""
        sent, size = [], 4096 + 512 + 1024
        device = PROGRAM.CpuDevice(torch)
        program = PROGRAM.Program(types.SimpleNamespace(send=sent.append), device, torch)
        program.model = model
        memory = bytearray(size)
        program.steps = PROGRAM.Steps(torch, device, memory, input_bytes, output_bytes)
        program.regions = [torch.zeros(4096, dtype=torch.uint8), torch.zeros(4096, dtype=torch.uint8)]
        place = lambda region, offset, dtype, shape: {"region": region, "offset": offset, "dtype": dtype, "shape": shape}
        slots = [{"inputs": [{"scalar": 2.0, "dtype": "float64"}, place(0, 256 + 768 * i, "float32", [8])],
                  "outputs": [place(1, 256 + 1024 * i, "float32", [8]), place(1, 768 + 1024 * i, "int64", [])]} for i in range(3)]
        program.inputs = [[2.0, program.tensor(slot["inputs"][1])] for slot in slots]
        program.steps.open(slots, program.regions)
        words, given = memoryview(memory)[:4096].cast("Q"), []

        def give(order):
            outputs = []
            for number, index in enumerate(order, 1):
                memory[4096:4096 + 32] = struct.pack("8f", *[index + 1] * 8)
                # The inputs of a call are nowhere before its turn.
                self.assertFalse(any(value == index + 1 for value in program.inputs[index][1].tolist()))
                if asleep:
                    time.sleep(0.01)  # it sleeps by now, and for good unless it is woken
                words[0] = number
                if asleep:
                    steps = program.steps
                    steps.futex(PROGRAM.SYS_FUTEX, steps.address, PROGRAM.FUTEX_WAKE, 1, None, None, 0)
                while words[8] < number:
                    time.sleep(0)
                outputs.append(bytes(memory[4096 + 512:]))
                for arguments in program.inputs:
                    arguments[1].fill_(float("nan"))
            given.append(outputs)

        for order in orders:
            words[0], words[8], words[16] = 0, 0, int(asleep)
            judge = threading.Thread(target=give, args=(order,))
            judge.start()
            program.run_in_steps(list(order))
            judge.join()
            self.assertEqual(sent[-1]["type"], "done")
        return given

    def test_each_step_takes_its_inputs_and_gives_its_outputs(self):
        self.check_steps(self.in_steps(lambda factor, x: (x * factor, 7)))

    @unittest.skipUnless(platform.machine() == "x86_64", "scripts are asked for steps on x86-64 alone")
    def test_steps_for_which_it_sleeps(self):
        self.check_steps(self.in_steps(lambda factor, x: (x * factor, 7), asleep=True))

    def check_steps(self, given):
        self.assertEqual([len(outputs) for outputs in given], [3, 2])
        for order, outputs in zip(((0, 1, 2), (2, 0)), given):
            for index, output in zip(order, outputs):
                self.assertEqual(struct.unpack("8f", output[:32]), (2.0 * (index + 1),) * 8)
                self.assertEqual(struct.unpack("q", output[512:520]), (7,))

    def test_what_is_of_another_shape_or_type_is_not_given(self):
        for result in (torch.ones(7), torch.ones(8, dtype=torch.float64), torch.ones(8, 1), None, "no"):
            given = self.in_steps(lambda factor, x: (result, torch.tensor(7)), orders=((0,),))
            self.assertEqual(given[0][0][:32], bytes(32), result)

    def test_steps_are_practised_before_the_program_and_change_nothing(self):
        sent = []
        device = PROGRAM.CpuDevice(torch)
        program = PROGRAM.Program(types.SimpleNamespace(send=sent.append), device, torch)
        memory = bytearray(4096 + 256 + 256)
        program.steps = PROGRAM.Steps(torch, device, memory, 256, 256)
        program.regions = [torch.full((1024,), 7, dtype=torch.uint8)]
        words = memoryview(memory)[:4096].cast("Q")
        memory[4096:4352] = bytes([7]) * 256
        words[0] = 3  # all are given
        program.practise_steps([{"inputs": [0, 256], "outputs": [[0, 512, 6], [0, 768, 16]]}] * 3)
        self.assertEqual((words[8], sent[-1]["type"]), (3, "done"))
        self.assertTrue(bool((program.regions[0] == 7).all()))
        self.assertEqual(bytes(memory[4352:4358]), bytes([7]) * 6)
        program.model = torch.nn.Identity()
        with self.assertRaises(PROGRAM.Failure):
            program.practise_steps([{"outputs": []}])

    def on_a_gpu(self):
        """A program with steps as on a GPU, where inputs and outputs are in the slots alone; its memory is the host's."""
        device = PROGRAM.CpuDevice(torch)
        device.kind, device.waited = "cuda", 0
        def wait():
            device.waited += 1
        device.wait = wait
        sent, memory = [], bytearray(4096 + 1)
        program = PROGRAM.Program(types.SimpleNamespace(send=sent.append), device, torch)
        program.steps = PROGRAM.Steps(torch, device, memory, 0, 0)
        program.regions = [torch.full((4096,), 7, dtype=torch.uint8)]
        return program, memoryview(memory)[:4096].cast("Q"), sent

    def test_steps_of_a_gpu_are_taken_from_the_slot_and_given_there(self):
        program, words, sent = self.on_a_gpu()
        place = lambda offset, dtype, shape: {"region": 0, "offset": offset, "dtype": dtype, "shape": shape}
        slots = [{"inputs": [{"scalar": 2.0, "dtype": "float64"}, place(1024 * i, "float32", [8])],
                  "outputs": [place(1024 * i + 256, "float32", [8]), place(1024 * i + 512, "int64", [])]} for i in range(3)]
        program.inputs = [[2.0, program.tensor(slot["inputs"][1])] for slot in slots]
        for index, (_, x) in enumerate(program.inputs):
            x.fill_(index + 1)
        program.steps.open(slots, program.regions)
        program.model = lambda factor, x: (x * factor, 7)
        words[0] = 2  # all are given
        program.run_in_steps([2, 0])
        self.assertEqual((words[8], sent[-1]["type"]), (2, "done"))
        given = [(program.tensor(slot["outputs"][0]).tolist(), program.tensor(slot["outputs"][1]).item()) for slot in slots]
        self.assertEqual([given[0], given[2]], [([2.0] * 8, 7), ([6.0] * 8, 7)])
        self.assertNotEqual(given[1][0], [4.0] * 8)
        self.assertEqual(program.device.waited, 4, "for the call, and for the copy of what it returned")
        program.model = lambda factor, x: (torch.ones(7), torch.ones((), dtype=torch.int64, device="meta"))
        words[8] = 0
        program.run_in_steps([0])
        self.assertEqual(program.tensor(slots[0]["outputs"][0]).tolist(), [2.0] * 8)

    def test_practice_of_a_gpu_copies_as_much_as_a_step_does(self):
        program, words, _ = self.on_a_gpu()
        words[0] = 3
        slots = [{"inputs": [0, 1024 * i], "outputs": [[0, 1024 * i + 256, 8], [0, 1024 * i + 512, 6]]} for i in range(3)]
        for i in range(3):
            program.regions[0][1024 * i + 256: 1024 * i + 264] = i
            program.regions[0][1024 * i + 512: 1024 * i + 518] = i
        program.practise_steps(slots)
        self.assertEqual(words[8], 3)
        for at, size in ((256, 8), (512, 6)):
            given = [program.regions[0][1024 * i + at: 1024 * i + at + size].tolist() for i in range(3)]
            self.assertEqual(given, [[0] * size] * 3, "each to the next slot")
        self.assertEqual(int(program.regions[0][0]), 7)

    def test_a_buffer_that_is_kept_and_returned_each_time_is_right_in_every_slot(self):
        for count in (1, 2, 5, 11):
            for views in (False, True):
                with self.subTest(count=count, views=views):
                    self.assertTrue(self.run_all(Kept(count, views)).copies)

    def test_one_that_appears_only_after_some_calls_is_right_from_then_on(self):
        class Later(Kept):
            def forward(self, x):
                if self.calls < 25:
                    self.calls += 1
                    return x * 2
                return super().forward(x)

        runs = ((0,), tuple(range(12)), tuple(range(12)), tuple(range(12)), tuple(range(5)))
        self.assertTrue(self.run_all(Later(1), runs=runs).copies)

    def test_fresh_results_are_not_copied(self):
        class Fresh(torch.nn.Module):
            def forward(self, x):
                return x * 2

        self.assertFalse(self.run_all(Fresh()).copies)
        self.assertFalse(self.run_all(Fresh(), told=True).copies)
        self.assertFalse(self.run_all(Kept(40)).copies)  # more than any run has


class Inputs(unittest.TestCase):
    def tensor(self, shape, strides, dtype="float32"):
        program = on_cpu()
        program.regions = [torch.arange(256 + 24, dtype=torch.float32).view(torch.uint8)]
        return program.tensor({"region": 0, "offset": 1024, "dtype": dtype, "shape": shape, "strides": strides})

    def test_strides_are_those_of_the_memory(self):
        tensor = self.tensor([4, 6], [1, 4])
        self.assertEqual(tensor.stride(), (1, 4))
        self.assertTrue(torch.equal(tensor, torch.arange(256.0, 280.0).view(6, 4).t()))
        self.assertEqual(self.tensor([1, 5], [1, 1]).stride(), (1, 1))

    def test_strides_that_leave_the_tensors_memory_are_refused(self):
        for shape, strides in (([4, 6], [1, 5]), ([4, 6], [6]), ([4, 6], [7, 1]), ([4, 6], [0, 1]), ([4, 6], [26, -11]),
                               ([4], [1, 1])):
            with self.subTest(shape=shape, strides=strides), self.assertRaises(PROGRAM.Failure):
                self.tensor(shape, strides)


class Observed(unittest.TestCase):
    """What the judge takes is [name, microseconds from 0, kind]; anything else would be a broken protocol."""

    def work(self, *events):
        seen = [types.SimpleNamespace(name=name, self_cpu_time_total=took) for name, took in events]
        profiler = types.SimpleNamespace(events=lambda: seen)
        return {name: took for name, took, _ in on_cpu().observed(profiler, [5000])}

    def test_self_times_below_zero_count_as_nothing(self):
        work = self.work(("aten::mm", 3.5), ("aten::linear", -2.0), ("aten::mm", -1.0))
        self.assertEqual(work, {"aten::mm": 3.5, "aten::linear": 0.0, "call": 5.0})

    def test_times_that_are_no_numbers_are_left_out(self):
        work = self.work(("aten::mm", float("nan")), ("aten::add", float("inf")), ("aten::relu", 2))
        self.assertEqual(work, {"aten::relu": 2.0, "call": 5.0})


class Modules(unittest.TestCase):
    """What stands in for parts of modules that a candidate may import."""

    def test_a_module_is_looked_at_when_it_is_imported_and_not_before(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "grove_takes_long.py"), "w", encoding="utf-8") as file:
                file.write("def builder():\n    return 'its own'\n")
            sys.path.insert(0, folder)
            try:
                seen = []
                PROGRAM.WhenImported("grove_takes_long", lambda module: (seen.append(module.builder()), setattr(module, "builder", lambda: "ours")))
                hooks = len(sys.meta_path)
                self.assertEqual(seen, [])
                self.assertNotIn("grove_takes_long", sys.modules)
                from grove_takes_long import builder
                self.assertEqual((seen, builder()), (["its own"], "ours"))
                self.assertEqual(len(sys.meta_path), hooks - 1)
                # It is there already: at once.
                PROGRAM.WhenImported("grove_takes_long", lambda module: seen.append(module.builder()))
                self.assertEqual(seen, ["its own", "ours"])
            finally:
                sys.path.remove(folder)
                sys.modules.pop("grove_takes_long", None)

    def test_the_builders_of_extensions_hand_out_what_is_built(self):
        script = f"""
import sys
sys.argv = ["", {sys.argv[1]!r}]
import importlib.machinery, importlib.util
loader = importlib.machinery.SourceFileLoader("candidate", sys.argv[1] + "/worker/candidate/grove-candidate-python")
candidate = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(candidate)
import torch
candidate.PrebuiltExtensions([], []).install(lambda name, *sources, **options: name)
print("torch.utils.cpp_extension" in sys.modules)
from torch.utils.cpp_extension import load_inline
try:
    load_inline(name="mine", cpp_sources="int one() {{ return 1; }}")
except RuntimeError as error:
    print("'mine' was not built ahead" in str(error))
"""
        answer = subprocess.run([sys.executable, "-B", "-c", script], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(answer.stdout.split(), ["False", "True"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
