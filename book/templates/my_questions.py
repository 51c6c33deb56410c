"""From a list of questions to steering: change the first lines, and run it."""

from transformers import AutoModelForCausalLM, AutoTokenizer

from conceptnb import plotting
from conceptnb.steering.own_questions import steer_questions
from conceptnb.steering.questions import read_questions

FILE = "questions.csv"  # columns question, best_answer, incorrect_answers (with ; between)
MODEL = "models/my-model"  # a folder, or a name on the hub
N_HEADS, ALPHA = 16, 2.0

if __name__ == "__main__":
    model = AutoModelForCausalLM.from_pretrained(MODEL).eval()
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    report = steer_questions(read_questions(FILE), model, tokenizer, n_heads=N_HEADS, alpha=ALPHA)
    print(report.summary().to_string(index=False))
    print(*report.warnings or ["no warnings"], sep="\n")
    plotting.reports.choices_by_category(report).savefig("steering.png")
