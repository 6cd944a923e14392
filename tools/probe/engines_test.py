#!/usr/bin/env python3
"""tools/probe/engines_test.py KVORACLE [PROMPTS]: real engines answer prompts on written models, and
`kvoracle probe answers` judges them. Then servers of these engines serve a model to `kvoracle probe check`.

Engines are transformers (with torch), llama.cpp (xllamacpp), mlx-lm, vLLM, SGLang and Ollama (the program), each if it is
installed. Prints a line per model and server. Ends with status 1 if a token is wrong or a planted fault does not show, and
with 77 if no engine is there. PROMPTS (40) is the number of golden prompts per model, and of made ones.
"""
import contextlib
import functools
import gzip
import importlib
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

GOLDEN = pathlib.Path(__file__).with_name("golden_answers.jsonl.gz")
BEGIN, SINK, FIRST_VALUE, VALUES = 1, 3, 272, 256
GENERATED = 48
HF = [["--dtype", dtype, "--head-dim", dim] for dim in ("64", "128") for dtype in ("bf16", "f32")]
HF += [["--dtype", dtype, "--window", "256", *past] for past in ([], ["--past-window"]) for dtype in ("bf16", "f32")]
# HF[0], [2], [4], [6]: bf16
GGUF = [["--format", "gguf", "--dtype", dtype, "--head-dim", dim] for dim in ("64", "128") for dtype in ("f16", "f32")]


def golden_prompts():
    with gzip.open(GOLDEN, "rt") as lines:
        return [json.loads(line)["prompt"] for line in lines]


def made_prompt(length, window, dice):
    """Tokens that read rows of the whole text; with a window, sinks in between."""
    tokens = [BEGIN]
    while len(tokens) < length:
        farthest = len(tokens).bit_length() - 1
        token_class = dice.choice([farthest, farthest, max(0, farthest - 1), dice.randint(0, farthest)])
        is_sink = window and len(tokens) % (window // 4) == 0
        tokens.append(SINK if is_sink else FIRST_VALUE + VALUES * token_class + dice.randrange(VALUES))
    return tokens


def prompts_for(options, count):
    """The golden prompts and as many others; only others where the golden ones break a rule."""
    dice = random.Random(" ".join(options))
    window = int(options[options.index("--window") + 1]) if "--window" in options else 0
    golden = [] if window else golden_prompts()[:count]
    return golden + [made_prompt(dice.randint(2, 1200), window, dice) for _ in range(count)]


def transformers_answers(folder, prompts):
    import torch
    import transformers
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
    for prompt in prompts:
        with torch.no_grad():
            text = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                                  max_new_tokens=GENERATED, do_sample=False, pad_token_id=0)
        yield text[0, len(prompt):].tolist()


def longer_window_answers(folder, prompts):
    """Those of transformers with a window that is one token too long."""
    config = folder / "config.json"
    read = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps({**read, "sliding_window": read["sliding_window"] + 1}), encoding="utf-8")
    yield from transformers_answers(folder, prompts)


def llama_server(folder):
    import xllamacpp
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(folder / "probe.gguf")
    parameters.n_ctx, parameters.n_parallel, parameters.n_gpu_layers, parameters.verbosity = 8192, 2, 0, 0
    return xllamacpp.Server(parameters)


def llama_cpp_answers(folder, prompts):
    server = llama_server(folder)
    for prompt in prompts:
        answer = server.handle_completions({"prompt": prompt, "n_predict": GENERATED, "temperature": 0})
        yield [FIRST_VALUE + ord(character) - 0x4E00 for character in answer["choices"][0]["text"]]


def mlx_answers(folder, prompts, **cache):
    import mlx.core
    import mlx_lm
    from mlx_lm.generate import generate_step
    model, _ = mlx_lm.load(str(folder))
    for prompt in prompts:
        steps = generate_step(mlx.core.array(prompt), model, max_tokens=GENERATED, **cache)
        yield [int(token) for token, _ in steps]


def with_stale_rows(prompt):
    """The prompt with other tokens at positions 1 to 16: their rows are those of another text."""
    stale = [FIRST_VALUE + 5 * token % VALUES for token in prompt[1:min(17, len(prompt) - 1)]]
    return prompt[:1] + stale + prompt[1 + len(stale):]


def written(kvoracle, folder, options):
    subprocess.run([kvoracle, "probe", "model", folder, *options], check=True, stdout=subprocess.DEVNULL)


def judge(kvoracle, engine, options, answers, prompts, sent):
    """Whether the tokens that an engine generates after `sent` are right after `prompts`."""
    with tempfile.TemporaryDirectory(prefix="kvoracle_engines_") as name:
        folder = pathlib.Path(name)
        written(kvoracle, folder / "model", options)
        with open(folder / "answers", "w", encoding="utf-8") as file:
            for prompt, tokens in zip(prompts, answers(folder / "model", sent)):
                if len(tokens) != GENERATED:
                    raise SystemExit(f"{engine} {' '.join(options)}: {len(tokens)} tokens, {GENERATED} are expected")
                print(json.dumps({"prompt": prompt, "continuation": tokens}), file=file)
        window = options[options.index("--window"):] if "--window" in options else []
        with open(folder / "answers", "rb") as file:
            judged = subprocess.run([kvoracle, "probe", "answers", "-", *window], stdin=file, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, check=False)
    print(f"{engine} {' '.join(options)}: {judged.stdout.strip()}", flush=True)
    if judged.returncode > 1:
        raise SystemExit(f"kvoracle probe answers: status {judged.returncode}")
    return judged.returncode == 0


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def served(command, port, **environment):
    """The address at which a command serves."""
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, **environment}) as server:
        try:
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                if server.poll() is not None:
                    log.seek(0)
                    raise SystemExit(f"{command}: {log.read()[-2000:]}")
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def serving(command):
    """The same, of Python, with the option --port."""
    port = free_port()
    return served([sys.executable, *map(str, command), "--port", str(port)], port, HF_HUB_OFFLINE="1")


@contextlib.contextmanager
def llama_serving(folder):
    server = llama_server(folder)
    yield server.listening_address + "/v1"
    del server


def adapter(folder, *options):
    return serving([pathlib.Path(__file__).with_name("serve_transformers.py"), folder, *options])


def mlx_serving(folder, *options):
    return serving(["-m", "mlx_lm", "server", "--model", folder, *options])


def planted(engine, fault, *options):
    return serving([pathlib.Path(__file__).with_name("planted.py"), engine, fault, *options,
                    "--served-model-name", "default_model"])


def vllm_serving(folder, fault="none"):
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
    return planted("vllm", fault, folder, "--enforce-eager", "--block-size", 32, "--max-model-len", 2048)


def sglang_serving(folder, fault="none"):
    os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
    return planted("sglang", fault, "--model-path", folder, "--device", "cpu", "--attention-backend", "torch_native",
                   "--disable-overlap-schedule", "--mem-fraction-static", 0.1, "--max-total-tokens", 8000)


@contextlib.contextmanager
def ollama_serving(folder):
    (folder / "Modelfile").write_text(f"FROM {folder}/probe.gguf\nTEMPLATE {{{{ .Prompt }}}}\nPARAMETER repeat_penalty 1\n",
                                      encoding="utf-8")
    port = free_port()
    environment = {"OLLAMA_HOST": f"127.0.0.1:{port}", "OLLAMA_MODELS": str(folder / "models")}
    with served(["ollama", "serve"], port, **environment) as url:
        subprocess.run(["ollama", "create", "default_model", "-f", folder / "Modelfile"], check=True,
                       env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield url


SMALL = ["--requests", "42", "--longest", "256"]
# Answers of Ollama end after 30 equal tokens.
SHORT = [*SMALL, "--plans", "alone,shared-prefix,a-b-a,repeated,chat,shorter,fork,edges,many-at-once"]


def check(kvoracle, engine, options, serve, arguments):
    """The status of `kvoracle probe check` on a server, and what it prints."""
    with tempfile.TemporaryDirectory(prefix="kvoracle_engines_") as name:
        folder = pathlib.Path(name) / "model"
        written(kvoracle, folder, options)
        with serve(folder) as url:
            checked = subprocess.run(
                [kvoracle, "probe", "check", url, "--timeout", "300", "--model", "default_model", *arguments],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(f"{engine} {' '.join(options)}: {checked.stdout.strip()}", flush=True)
    if checked.returncode > 1:
        raise SystemExit(f"kvoracle probe check: status {checked.returncode}")
    return checked.returncode, checked.stdout


TORCH, LLAMA, MLX, VLLM, SGLANG = ["torch", "transformers"], ["xllamacpp"], ["mlx_lm"], ["vllm"], ["sglang"]
OLLAMA = ["ollama"]
ENGINES = [
    ("transformers", TORCH, HF, transformers_answers),
    ("llama.cpp", LLAMA, GGUF, llama_cpp_answers),
    ("mlx-lm", MLX, [HF[0], HF[2]], mlx_answers),
    ("mlx-lm, 8 bit", MLX, [HF[0]], functools.partial(mlx_answers, kv_bits=8, quantized_kv_start=0)),
    ("mlx-lm, rotating", MLX, [HF[4]], functools.partial(mlx_answers, max_kv_size=512)),
]
SERVERS = [
    ("transformers, DynamicCache", TORCH, HF[0], adapter),
    ("transformers, StaticCache", TORCH, HF[2], lambda folder: adapter(folder, "--static", 512)),
    ("transformers, paged", TORCH, HF[0], lambda folder: adapter(folder, "--paged", 100)),
    ("llama-server", LLAMA, GGUF[0], llama_serving),
    ("mlx_lm.server", MLX, HF[0], mlx_serving),
    ("mlx_lm.server, 8 bit", MLX, HF[0], lambda folder: mlx_serving(folder, "--kv-bits", 8, "--quantized-kv-start", 0)),
    ("vLLM", VLLM, HF[0], vllm_serving),
    ("SGLang", SGLANG, HF[0], sglang_serving),
    ("Ollama", OLLAMA, GGUF[0], ollama_serving),
]
# Server, fault, arguments, and what the verdict says.
FAULTS = [
    ("transformers, DynamicCache", TORCH, "a stale row", lambda folder: adapter(folder, "--stale-rows", 1),
     ["--requests", "8", "--longest", "64", "--tokens", "6"], "stale tail"),
    *((engine, needs, fault, functools.partial(serve, fault=fault), ["--requests", "100", "--longest", "256"], "memory fault")
      for engine, needs, serve, fault in [("vLLM", VLLM, vllm_serving, "key_lacks_last_token"),
                                          ("SGLang", SGLANG, sglang_serving, "hit_repeats_row")]),
]


def missing(needs):
    """The first of the modules that is not there, in words; or of the programs."""
    if needs is OLLAMA:
        return None if shutil.which("ollama") else "No program named 'ollama'"
    for module in needs:
        try:
            importlib.import_module(module)
        except ImportError as failure:
            return str(failure)
    return None


def main(kvoracle, count="40"):
    sound = []
    for engine, modules, models, answers in ENGINES:
        if lacks := missing(modules):
            print(f"skipped: {engine}: {lacks}")
            continue
        for options in models:
            prompts = prompts_for(options, int(count))
            sound.append(judge(kvoracle, engine, options, answers, prompts, prompts))
        # A fault must show, or the agreement above means nothing.
        print("with stale rows, which must differ: ", end="", flush=True)
        prompts = prompts_for(models[0], 4)
        sound.append(not judge(kvoracle, engine, models[0], answers, prompts, list(map(with_stale_rows, prompts))))
    if not missing(TORCH):
        print("with a window that is too long, which must differ: ", end="", flush=True)
        prompts = prompts_for(HF[6], 4)
        sound.append(not judge(kvoracle, "transformers", HF[6], longer_window_answers, prompts, prompts))
    for engine, needs, options, serve in SERVERS:
        if lacks := missing(needs):
            print(f"skipped: {engine}: {lacks}")
            continue
        sound.append(check(kvoracle, engine, options, serve, SHORT if needs is OLLAMA else SMALL)[0] == 0)
    for engine, needs, fault, serve, arguments, said in FAULTS:
        if not missing(needs):
            print(f"with {fault}, which must be named: ", end="", flush=True)
            status, text = check(kvoracle, engine, HF[0], serve, arguments)
            sound.append(status == 1 and said in text)
    return 77 if not sound else 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
