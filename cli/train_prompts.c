/* What a model is trained on where no file of prompts is named: half programs, half talk, in turns.
 * None of them is among those that benchmarks use. */
#include "cli/prompts.h"

#include "cli/terminal.h"

#include <stdlib.h>

static const char *const usual[] = {
    "Write a Python function that returns the longest common prefix of a list of strings.",
    "Explain in simple words why the sea is salty.",
    "Write a C function that reverses the bits of a 32-bit unsigned integer, and explain how it "
    "works.",
    "What should I look out for when I buy a used bicycle?",
    "Write a JavaScript function that groups an array of objects by the value of a given key.",
    "Describe the water cycle for a school book.",
    "Complete this function:\n\ndef is_balanced(text):\n    \"\"\"Whether all brackets in text, "
    "round, square and curly, are closed in the right order.\"\"\"\n",
    "Write a short letter to a neighbour, asking for less noise late in the evening.",
    "Write a Rust function that counts the words in a string and returns a sorted vector of pairs.",
    "Give me three ideas for a dinner with rice and vegetables, with the steps.",
    "Write a SQL query that finds the second highest salary in each department. Explain it.",
    "Who was Marie Curie, and what is she known for?",
    "Write a Python class for a stack that also returns its minimum in constant time.",
    "Summarise the story of Robinson Crusoe in five sentences.",
    "Complete this function:\n\nint count_set_bits(unsigned int n)\n{\n    /* Returns how many "
    "bits "
    "of n are 1. */\n",
    "What is the difference between weather and climate?",
    "Write a Go program that reads lines from standard input and prints those that contain a word "
    "given as its argument.",
    "Write a poem of eight lines about a lighthouse in winter.",
    "Find the mistake in this Python function and correct it:\n\ndef mean(values):\n    total = 0\n"
    "    for v in values:\n        total = v\n    return total / len(values)\n",
    "How does a refrigerator work?",
    "Write a bash script that renames all .jpeg files in a folder to .jpg and tells how many it "
    "renamed.",
    "A train goes 180 kilometres in two and a half hours. How fast is it on average? Show the "
    "steps.",
    "Write a C++ class for a matrix of doubles with addition and multiplication.",
    "Explain what inflation is and what it means for someone who saves money.",
    "Write unit tests in Python for a function parse_date(text) that takes \"2024-05-31\" and "
    "raises "
    "ValueError for anything else.",
    "Write a dialogue between a shopkeeper and a customer who wants to return a coat.",
    "Write a Java method that merges two sorted arrays of int into one sorted array.",
    "What were the main causes of the French Revolution?",
    "Complete this function:\n\ndef flatten(items):\n    \"\"\"Turns a list of lists of any depth "
    "into "
    "one list.\n\n    >>> flatten([1, [2, [3, 4]], 5])\n    [1, 2, 3, 4, 5]\n    \"\"\"\n",
    "Give advice to someone who sleeps badly before examinations.",
    "Write a Python script that reads a CSV file and prints the sum of each numeric column.",
    "Translate into German: The meeting was moved to Thursday because two of us are ill.",
    "Write a C function that splits a string at a character without changing the string.",
    "Why do leaves change their colour in autumn?",
    "Write an HTML page with a form for a name and an e-mail address, and JavaScript that checks "
    "both "
    "before it is sent.",
    "Describe a typical day of a baker, from the first person's view.",
    "Write a binary search in Python that returns the first position at which a value could be "
    "inserted.",
    "Compare travelling by train and by plane within one country: time, cost, environment.",
    "Write a TypeScript function that delays calls so that it runs once at most every n "
    "milliseconds.",
    "What is photosynthesis, and why does it matter to animals?",
};
enum { N_USUAL = sizeof usual / sizeof *usual };

drey_status prompts_usual(prompt_list *list, drey_error *err)
{
    *list = (prompt_list){0};
    list->prompts = calloc(N_USUAL, sizeof *list->prompts);
    list->lines = calloc(N_USUAL, sizeof *list->lines);
    if (!list->prompts || !list->lines) {
        prompts_free(list);
        return fail(err, DREY_ERR_MEMORY, "out of memory for the usual prompts");
    }
    list->n = N_USUAL;
    for (int i = 0; i < N_USUAL; i++)
        list->prompts[i] = (bench_prompt){.chat = true, .text = usual[i]};
    return DREY_OK;
}
