"""From a table of environments to learned concepts: change the first lines, and run it."""

from conceptnb.learning.environment_tables import learn_concepts, read_environments
from conceptnb.plotting.reports import valuations_by_environment

FILE = "beans.csv"  # a row for each observation, and a column "environment"
BASE = "any"  # the environment collected without looking for anything
LOOKED_FOR = {  # which concepts each other environment was collected by
    "dark": ["roast"],
    "light": ["roast"],
    "sour": ["acidity"],
    "dark and mild": ["roast", "acidity"],
}

if __name__ == "__main__":
    table = read_environments(FILE, base=BASE)
    report = learn_concepts(table, LOOKED_FOR, encoder="linear")
    print(report.summary().to_string(index=False))
    print(*report.warnings or ["no warnings"], sep="\n")
    valuations_by_environment(report).savefig("valuations.png")
    report.learner.save("concepts.safetensors")  # ConceptLearner.load reads it again
