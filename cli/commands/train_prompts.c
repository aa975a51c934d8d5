/* What predictors are trained on where no file of prompts is named: programs and talk in turns, as
 * questions to a chat or as texts to be continued. None is among those that benchmarks use. */
#include "cli/files/prompts.h"

#include "cli/terminal/terminal.h"

#include <stdlib.h>

typedef struct usual_prompt {
    enum { ASKED, BEGUN } how; /* a turn of a chat, a text as it is */
    const char *text;
} usual_prompt;

static const usual_prompt usual[] = {
    {ASKED, "Write a Python function that returns the longest common prefix of a list of strings."},
    {ASKED, "Explain in simple words why the sea is salty."},
    {ASKED, "Write a C function that reverses the bits of a 32-bit unsigned integer, and explain "
            "how it works."},
    {ASKED, "What should I look out for when I buy a used bicycle?"},
    {ASKED, "Write a JavaScript function that groups an array of objects by the value of a given "
            "key."},
    {ASKED, "Describe the water cycle for a school book."},
    {ASKED, "Complete this function:\n\ndef is_balanced(text):\n    \"\"\"Whether all brackets in "
            "text, round, square and curly, are closed in the right order.\"\"\"\n"},
    {ASKED, "Write a short letter to a neighbour, asking for less noise late in the evening."},
    {ASKED, "Write a Rust function that counts the words in a string and returns a sorted vector "
            "of pairs."},
    {ASKED, "Give me three ideas for a dinner with rice and vegetables, with the steps."},
    {ASKED, "Write a SQL query that finds the second highest salary in each department. Explain "
            "it."},
    {ASKED, "Who was Marie Curie, and what is she known for?"},
    {ASKED, "Write a Python class for a stack that also returns its minimum in constant time."},
    {ASKED, "Summarise the story of Robinson Crusoe in five sentences."},
    {ASKED, "Complete this function:\n\nint count_set_bits(unsigned int n)\n{\n    /* Returns how "
            "many bits of n are 1. */\n"},
    {ASKED, "What is the difference between weather and climate?"},
    {ASKED, "Write a Go program that reads lines from standard input and prints those that "
            "contain a word given as its argument."},
    {ASKED, "Write a poem of eight lines about a lighthouse in winter."},
    {ASKED, "Find the mistake in this Python function and correct it:\n\ndef mean(values):\n    "
            "total = 0\n    for v in values:\n        total = v\n    return total / len(values)\n"},
    {ASKED, "How does a refrigerator work?"},
    {ASKED, "Write a bash script that renames all .jpeg files in a folder to .jpg and tells how "
            "many it renamed."},
    {ASKED, "A train goes 180 kilometres in two and a half hours. How fast is it on average? Show "
            "the steps."},
    {ASKED, "Write a C++ class for a matrix of doubles with addition and multiplication."},
    {ASKED, "Explain what inflation is and what it means for someone who saves money."},
    {ASKED, "Write unit tests in Python for a function parse_date(text) that takes \"2024-05-31\" "
            "and raises ValueError for anything else."},
    {ASKED, "Write a dialogue between a shopkeeper and a customer who wants to return a coat."},
    {ASKED, "Write a Java method that merges two sorted arrays of int into one sorted array."},
    {ASKED, "What were the main causes of the French Revolution?"},
    {ASKED, "Complete this function:\n\ndef flatten(items):\n    \"\"\"Turns a list of lists of "
            "any depth into one list.\n\n    >>> flatten([1, [2, [3, 4]], 5])\n    [1, 2, 3, 4, "
            "5]\n    \"\"\"\n"},
    {ASKED, "Give advice to someone who sleeps badly before examinations."},
    {ASKED, "Write a Python script that reads a CSV file and prints the sum of each numeric "
            "column."},
    {ASKED, "Translate into German: The meeting was moved to Thursday because two of us are ill."},
    {ASKED, "Write a C function that splits a string at a character without changing the string."},
    {ASKED, "Why do leaves change their colour in autumn?"},
    {ASKED, "Write an HTML page with a form for a name and an e-mail address, and JavaScript that "
            "checks both before it is sent."},
    {ASKED, "Describe a typical day of a baker, from the first person's view."},
    {ASKED, "Write a binary search in Python that returns the first position at which a value "
            "could be inserted."},
    {ASKED,
     "Compare travelling by train and by plane within one country: time, cost, environment."},
    {ASKED, "Write a TypeScript function that delays calls so that it runs once at most every n "
            "milliseconds."},
    {ASKED, "What is photosynthesis, and why does it matter to animals?"},
    {ASKED, "Write a Python function that converts Roman numerals to integers and raises "
            "ValueError for texts that are none."},
    {ASKED, "A shop sells pens at 3 for 2 euros. How much do 24 pens cost? Think step by step."},
    {ASKED, "Write a C function that trims blanks from both ends of a string in place."},
    {ASKED, "Write a friendly e-mail to colleagues that invites them to a picnic next Friday."},
    {BEGUN, "import java.util.*;\n\n/** A queue of limited size: the oldest entry is dropped when "
            "a new one does not fit. */\npublic class RingQueue<T> {\n    private final Object[] "
            "items;\n"},
    {BEGUN,
     "The old clock on the wall had stopped at a quarter past nine, and nobody in the house"},
    {ASKED, "Explain the difference between a process and a thread, with a small example in C."},
    {ASKED, "Explain how vaccines work to a twelve-year-old."},
    {ASKED, "Write a Python generator that yields the prime numbers below n with a sieve."},
    {ASKED, "Tom has 4 boxes with 18 apples each. He gives away a third of all apples and eats 2. "
            "How many are left?"},
    {BEGUN, "def word_frequencies(path, n=10):\n    \"\"\"Returns the n most frequent words of a "
            "text file.\n\n    Words are compared in lower case; punctuation is ignored.\n    "
            "Returns a list of (word, count), the most frequent first.\n    \"\"\"\n"},
    {ASKED, "Write a short fairy tale about a fox who wanted to learn to swim."},
    {ASKED, "Write a SQL schema for a small library: books, members, loans. Then a query for all "
            "overdue loans."},
    {ASKED, "List the planets of the solar system with one fact about each."},
    {ASKED, "What does this regular expression match? ^[A-Za-z_][A-Za-z0-9_]*$ Explain each part."},
    {ASKED, "Pretend that you are a tour guide in Rome. Greet your group and tell what they will "
            "see today."},
    {ASKED, "Write a Rust enum for the shapes circle, rectangle and triangle with a method that "
            "returns the area."},
    {ASKED, "Which is heavier: a kilogram of feathers or a kilogram of iron? Explain."},
    {BEGUN, "#include <stdio.h>\n#include <string.h>\n\n/* Prints the lines of a file that "
            "contain a word, with their numbers. */\nint print_matches(const char *path, const "
            "char *word)\n{\n"},
    {ASKED, "Extract all names and ages from this text as a table: Anna is 34 and lives with her "
            "brother Paul, 29, next to old Mr. Weber, who turned 81 last week."},
    {ASKED, "Write a JavaScript function that fetches JSON from a URL, tries again up to three "
            "times, and throws the last error."},
    {ASKED, "What are the advantages and disadvantages of working from home?"},
    {ASKED, "Rewrite this loop as a list comprehension:\n\nresult = []\nfor x in numbers:\n    if "
            "x % 2 == 0:\n        result.append(x * x)"},
    {BEGUN, "Dear Sir or Madam,\n\nI am writing to apply for the position of"},
    {ASKED, "Write a Go function that runs a list of jobs with at most n goroutines at the same "
            "time."},
    {ASKED, "Describe how a bill becomes a law in a parliamentary democracy."},
    {BEGUN, "class BankAccount:\n    \"\"\"An account with deposits, withdrawals and a history of "
            "both.\"\"\"\n\n    def __init__(self, owner, balance=0):\n        self.owner = "
            "owner\n"},
    {ASKED, "A rectangle is 7 cm longer than it is wide, and its perimeter is 54 cm. Find its "
            "sides."},
    {ASKED, "Write a bash script that makes a backup of a folder as a .tar.gz with the date in "
            "its name and keeps only the seven latest."},
    {ASKED, "Write a product description for a waterproof backpack."},
    {ASKED, "Write a C++ function template that returns the index of the largest element of a "
            "vector. What happens for an empty one?"},
    {ASKED, "What is the meaning of the saying \"Don't count your chickens before they hatch\"?"},
    {ASKED, "How do I undo the last commit in git without losing my changes?"},
    {ASKED, "If all roses are flowers and some flowers fade quickly, do some roses fade quickly? "
            "Explain your reasoning."},
    {BEGUN, "-- Tables: employees(id, name, department_id, salary), departments(id, name)\n-- The "
            "average salary of each department, the highest first.\nSELECT"},
    {ASKED, "Give five tips for a job interview."},
    {ASKED, "Write a Python decorator that measures how long a function takes and prints it."},
    {ASKED, "Correct the grammar of this text: \"Yesterday I goed to the shop and buyed two "
            "bread, but they was to expensive.\""},
    {ASKED, "Write a CSS rule set for a page with a header, a side bar of 240 pixels and a main "
            "column, with grid."},
    {ASKED, "Explain the theory of plate tectonics and what it says about earthquakes."},
};
enum { N_USUAL = sizeof usual / sizeof *usual };

drey_status prompts_usual(prompt_list *list, drey_error *err)
{
    *list = (prompt_list){0};
    list->prompts = calloc(N_USUAL, sizeof *list->prompts);
    list->texts = calloc(N_USUAL, sizeof *list->texts);
    if (!list->prompts || !list->texts) {
        prompts_free(list);
        FAIL(err, DREY_ERR_MEMORY, "out of memory for the usual prompts");
    }
    list->n = N_USUAL;
    for (int i = 0; i < N_USUAL; i++)
        list->prompts[i] = (bench_prompt){.chat = usual[i].how == ASKED, .text = usual[i].text};
    return DREY_OK;
}
