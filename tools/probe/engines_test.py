#!/usr/bin/env python3
"""tools/probe/engines_test.py KVORACLE [PROMPTS]: real engines answer prompts on written models, and
`kvoracle probe answers` judges them.

Engines are transformers (with torch), and llama.cpp (xllamacpp), each if it is installed. Prints a line per
model. Ends with status 1 if a token is wrong or a planted fault does not show, and with 77 if no engine is there.
PROMPTS (40) is the number of golden prompts per model, and of made ones.
"""
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path(__file__).with_name("golden_answers.jsonl.gz")
BEGIN, SINK, FIRST_VALUE, VALUES = 1, 3, 272, 256
GENERATED = 48
HF = [["--dtype", dtype, "--head-dim", dim] for dim in ("64", "128") for dtype in ("bf16", "f32")]
HF += [["--dtype", dtype, "--window", "256"] for dtype in ("bf16", "f32")]
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


def llama_cpp_answers(folder, prompts):
    import xllamacpp
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(folder / "probe.gguf")
    parameters.n_ctx, parameters.n_parallel, parameters.n_gpu_layers, parameters.verbosity = 8192, 2, 0, 0
    server = xllamacpp.Server(parameters)
    for prompt in prompts:
        answer = server.handle_completions({"prompt": prompt, "n_predict": GENERATED, "temperature": 0})
        yield [FIRST_VALUE + ord(character) - 0x4E00 for character in answer["choices"][0]["text"]]


def with_stale_rows(prompt):
    """The prompt with other tokens at positions 1 to 16: their rows are those of another text."""
    stale = [FIRST_VALUE + 5 * token % VALUES for token in prompt[1:min(17, len(prompt) - 1)]]
    return prompt[:1] + stale + prompt[1 + len(stale):]


def judge(kvoracle, engine, options, answers, prompts, sent):
    """Whether the tokens that an engine generates after `sent` are right after `prompts`."""
    with tempfile.TemporaryDirectory(prefix="kvoracle_engines_") as name:
        folder = pathlib.Path(name)
        subprocess.run([kvoracle, "probe", "model", folder / "model", *options], check=True, stdout=subprocess.DEVNULL)
        with open(folder / "answers", "w", encoding="utf-8") as file:
            for prompt, tokens in zip(prompts, answers(folder / "model", sent)):
                if len(tokens) != GENERATED:
                    raise SystemExit(f"{engine} {' '.join(options)}: {len(tokens)} tokens, {GENERATED} are expected")
                print(json.dumps({"prompt": prompt, "continuation": tokens}), file=file)
        window = options[options.index("--window"):][:2] if "--window" in options else []
        with open(folder / "answers", "rb") as file:
            judged = subprocess.run([kvoracle, "probe", "answers", "-", *window], stdin=file, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, check=False)
    print(f"{engine} {' '.join(options)}: {judged.stdout.strip()}", flush=True)
    if judged.returncode > 1:
        raise SystemExit(f"kvoracle probe answers: status {judged.returncode}")
    return judged.returncode == 0


def main(kvoracle, count="40"):
    sound = []
    for engine, module, models, answers in (("transformers", "transformers", HF, transformers_answers),
                                            ("llama.cpp", "xllamacpp", GGUF, llama_cpp_answers)):
        try:
            __import__(module)
            if engine == "transformers":
                __import__("torch")
        except ImportError as missing:
            print(f"skipped: {engine}: {missing}")
            continue
        for options in models:
            prompts = prompts_for(options, int(count))
            sound.append(judge(kvoracle, engine, options, answers, prompts, prompts))
        # A fault must show, or the agreement above means nothing.
        print("with stale rows, which must differ: ", end="", flush=True)
        prompts = prompts_for(models[0], 4)
        sound.append(not judge(kvoracle, engine, models[0], answers, prompts, list(map(with_stale_rows, prompts))))
    return 77 if not sound else 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
