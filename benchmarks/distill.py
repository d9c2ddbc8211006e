"""Train the draft of the demo's model on texts that the model writes itself: ``python -m benchmarks.distill``.

In four steps, each of which can be left out if it is done already: prompts are made of templates, the model answers
them (half under a grammar), a head learns to predict its distributions and hidden states (EAGLE: Li et al. 2024), and
what it has learnt is measured on answers to other prompts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

import grammarspec as gs
from grammarspec.decoding import Request, Sampling, generate_batch
from grammarspec.decoding.draft import Draft
from grammarspec.decoding.proposers.eagle import Eagle
from grammarspec.decoding.proposers.eagle_head import EagleConfig, EagleHead
from grammarspec.decoding.proposers.protocol import BatchView
from grammarspec.models.loading import encode_prompt, load_model, vocabulary_of

HERE = Path(__file__).parent
WORDS = 80  # of a prompt at most
HELD_OUT = 32  # of so many texts, one is not trained on
STEPS = ("answer", "train", "evaluate")
LENGTHS = {"free": 96, "grammar": 80}  # tokens of an answer at most


# ---------------------------------------------------------------------- prompts
@dataclass(frozen=True)
class Task:
    """A prompt, and what its answer must be.

    Attributes:
        kind: what is asked for.
        prompt: the text of the user.
        schema: a JSON Schema, as text, or ``None``.
        pattern: a regular expression, or ``None``.
    """

    kind: str
    prompt: str
    schema: str | None = None
    pattern: str | None = None


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


FIRST = _words(
    "Ada, Ahmed, Amara, Anders, Beatriz, Bruno, Chen, Clara, Daisuke, Diego, Elena, Emeka, Farid, Fatima, Greta, "
    "Hana, Hugo, Ines, Ivan, Jonas, Julia, Kofi, Lars, Leila, Liam, Lucia, Maja, Marco, Mei, Milan, Nadia, Noor, "
    "Olga, Omar, Paula, Petra, Priya, Quentin, Rafael, Rosa, Samir, Sara, Sofia, Stefan, Tariq, Tess, Uma, Viktor, "
    "Wanda, Yusuf"
)
LAST = _words(
    "Abbott, Becker, Castillo, Dubois, Eriksen, Fischer, Garcia, Hansen, Ito, Johansson, Kowalski, Lopez, Moreau, "
    "Nguyen, Okafor, Patel, Quinn, Rossi, Silva, Tanaka, Ueda, Vargas, Weber, Xu, Yilmaz, Zhang, Carter, Bennett, "
    "Foster, Hughes"
)
CITIES = _words(
    "Athens, Bogota, Boston, Brussels, Chicago, Copenhagen, Dakar, Denver, Geneva, Hamburg, Helsinki, Istanbul, "
    "Kyoto, Lagos, Lisbon, London, Lyon, Manila, Melbourne, Miami, Montreal, Mumbai, Munich, Nairobi, Naples, Porto, "
    "Prague, Quito, Seattle, Seoul, Seville, Sofia, Stockholm, Sydney, Toronto, Turin, Vancouver, Vienna, Warsaw, "
    "Zurich"
)
COUNTRIES = _words(
    "Argentina, Australia, Austria, Belgium, Brazil, Canada, Chile, China, Denmark, Egypt, Finland, France, Germany, "
    "Ghana, Greece, India, Indonesia, Ireland, Italy, Japan, Kenya, Mexico, Morocco, Norway, Peru, Poland, Portugal, "
    "Spain, Sweden, Turkey, Vietnam"
)
JOBS = _words(
    "accountant, architect, baker, carpenter, chemist, dentist, designer, doctor, driver, editor, electrician, "
    "engineer, farmer, journalist, lawyer, librarian, mechanic, musician, nurse, painter, pilot, plumber, teacher, "
    "translator"
)
THINGS = _words(
    "backpack, blender, camera, coffee machine, desk, drill, fan, guitar, headphones, jacket, keyboard, laptop, "
    "monitor, mug, notebook, oven, pair of shoes, phone, radio, rug, scarf, sofa, speaker, suitcase, table, tent, "
    "toaster, watch"
)
COLOURS = _words("black, blue, brown, green, grey, orange, pink, purple, red, silver, white, yellow")
TOPICS = _words(
    "photosynthesis, gravity, inflation, the water cycle, machine learning, vaccines, black holes, democracy, plate "
    "tectonics, the Roman Empire, the French Revolution, DNA, recycling, electric cars, solar panels, coral reefs, "
    "volcanoes, the immune system, supply and demand, evolution, the stock market, healthy sleep, time management, "
    "public speaking, climate change, bees, chess, jazz, yoga, bread baking, the internet, encryption, databases, "
    "compilers, blockchains, the Moon, glaciers, rainforests, the Silk Road, the Renaissance, antibiotics, magnets, "
    "friction, lightning, tides, credit cards, insurance, mortgages, teamwork, remote work, city parks, marathon "
    "training"
)
MONTHS = _words("January, February, March, April, May, June, July, August, September, October, November, December")
EVENTS = _words(
    "a concert, a workshop on pottery, the annual meeting, a book club, a flea market, a cooking class, a job "
    "interview, a chess tournament, a school play, a product launch, a birthday party, a charity run, a science fair, "
    "a wine tasting"
)
DISHES = _words(
    "lentil soup, vegetable curry, apple pie, mushroom risotto, chicken salad, pancakes, tomato pasta, fish tacos, "
    "banana bread, omelette, potato gratin, fried rice, chili, pumpkin soup, blueberry muffins, hummus"
)
PLACES = _words("the library, the town hall, room 204, the main square, the gym, the museum, hall B, the old station")
COMPANIES = _words(
    "Acme Tools, Blue Harbor, Cedar Systems, Delta Foods, Evergreen Energy, Fern Books, Granite Bank, Horizon Travel, "
    "Ivory Textiles, Juniper Labs, Kestrel Air, Lumen Lighting, Maple Clinics, Northwind Shipping, Orchid Hotels"
)
TABLES = {
    "employees": ("name", "department", "salary", "hired_on", "city"),
    "products": ("title", "price", "stock", "category", "rating"),
    "orders": ("customer_id", "total", "created_at", "status", "country"),
    "students": ("name", "grade", "birth_year", "school", "points"),
    "books": ("title", "author", "year", "pages", "genre"),
    "flights": ("origin", "destination", "departure", "price", "airline"),
}
FUNCTIONS = _words(
    "reverses a string, checks whether a number is prime, returns the largest element of a list, counts the vowels of "
    "a text, computes the factorial of n, merges two sorted lists, removes duplicates from a list, sums the even "
    "numbers of a list, checks whether a text is a palindrome, converts Celsius to Fahrenheit, returns the n-th "
    "Fibonacci number, counts how often each word occurs, finds the longest word in a sentence, rotates a list by k "
    "places, flattens a nested list, computes the mean and the median, validates a password, sorts a list of tuples "
    "by the second item, reads a file line by line, computes the greatest common divisor, transposes a matrix, groups "
    "words by their length"
)
LANGUAGES = _words("Python, Python, Python, JavaScript, Java, C, Rust, Go")
LISTS = _words(
    "fruits, countries in Africa, programming languages, musical instruments, kitchen tools, reasons to exercise, "
    "things to pack for a beach trip, indoor plants, breakfast ideas, ways to save water, famous scientists, dog "
    "breeds, ways to learn a language, gifts for a friend, interview questions, hobbies, names for a cat, board "
    "games, rivers, vegetables, sports, icebreaker questions, tips for better sleep, ways to reduce waste, questions "
    "about history"
)
STYLES = _words(
    "in one sentence, in two sentences, briefly, in simple words, for a child, for a beginner, with an example, in a "
    "friendly tone, in a few words, step by step"
)


def _string(most: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": most}


def _integer(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _record(draw: random.Random) -> tuple[str, dict[str, Any]]:
    """A text, and the fields that may be read off it."""
    person, other = (f"{draw.choice(FIRST)} {draw.choice(LAST)}" for _ in range(2))
    first, city, origin = draw.choice(FIRST), draw.choice(CITIES), draw.choice(CITIES)
    job, thing, colour, company = (draw.choice(each) for each in (JOBS, THINGS, COLOURS, COMPANIES))
    count, price, age = draw.randint(2, 60), draw.randint(5, 2000), draw.randint(18, 90)
    month, day, year = draw.choice(MONTHS), draw.randint(1, 28), draw.randint(1960, 2030)
    who = draw.choice((person, first))
    match draw.randrange(9):
        case 0:
            text = draw.choice(
                (
                    f"{who} is a {age}-year-old {job} from {city}.",
                    f"{who}, {age}, works as a {job} in {city}.",
                    f"Meet {who}, who is {age} years old and lives in {city}.",
                    f"In {city} I talked to {who}, a {job} of {age} years.",
                    f"{who} turned {age} in {month}. {draw.choice(('She', 'He'))} moved to {city} to work as a {job}.",
                )
            )
            fields = {"name": _string(40), "age": _integer(0, 120), "city": _string(30), "job": _string(30)}
            fields["employed"] = {"type": "boolean"}
        case 1:
            text = draw.choice(
                (
                    f"Order: {count} {colour} {thing}s from {company}, {price} dollars in total.",
                    f"{who} bought {count} {thing}s for {price} euros each. Colour: {colour}.",
                    f"Please deliver {count} {colour} {thing}s to {who} in {city}. The total is {price} dollars.",
                )
            )
            fields = {"product": _string(30), "quantity": _integer(1, 1000), "price": {"type": "number"}}
            fields |= {"color": {"enum": COLOURS}, "customer": _string(40), "express": {"type": "boolean"}}
        case 2:
            event, place = draw.choice(EVENTS), draw.choice(PLACES)
            text = draw.choice(
                (
                    f"On {month} {day}, {year} there is {event} at {place} in {city}.",
                    f"{who} invites you to {event}: {day} {month} {year}, {draw.randint(8, 21)}:00, {place}.",
                    f"Save the date: {event}, {month} {day}, {place}. Tickets are {price} dollars.",
                )
            )
            fields = {"title": _string(40), "date": {"type": "string", "format": "date"}, "place": _string(30)}
            fields |= {"host": _string(40), "tickets": {"type": ["integer", "null"]}}
        case 3:
            mood = draw.choice(("great", "terrible", "fine", "much too expensive", "beautiful", "broken", "slow"))
            text = draw.choice(
                (
                    f"The {thing} I got from {company} is {mood}. I would {draw.choice(('', 'not '))}buy it again.",
                    f"After {count} days my {colour} {thing} is still {mood}. {draw.choice(('Happy', 'Angry'))}.",
                    f"Service at {company} was {mood}, but the {thing} itself is {draw.choice(('good', 'bad'))}.",
                )
            )
            fields = {"sentiment": {"enum": ["positive", "negative", "mixed"]}, "product": _string(30)}
            fields |= {"rating": _integer(1, 5), "summary": _string(60), "company": _string(30)}
        case 4:
            text = draw.choice(
                (
                    f"The train from {origin} to {city} takes {draw.randint(1, 15)} hours and costs {price} euros.",
                    f"{who} flies from {origin} to {city} on {day} {month} {year}.",
                    f"We drove from {origin} to {city} in {draw.randint(1, 15)} hours with {count} bags.",
                )
            )
            fields = {"from": _string(30), "to": _string(30), "hours": _integer(1, 100), "traveller": _string(40)}
            fields["means"] = {"enum": ["train", "plane", "car", "bus"]}
        case 5:
            text = draw.choice(
                (
                    f"{company} was founded by {person} in {city} in {year} and has {count * 10} employees.",
                    f"{person} and {other} run {company}, a firm in {city} with {count} people.",
                    f"In {year}, {company} of {city} made {price} million dollars.",
                )
            )
            fields = {"company": _string(30), "founded": _integer(1800, 2030), "city": _string(30)}
            fields |= {"founders": {"type": "array", "items": _string(40), "minItems": 1, "maxItems": 3}}
            fields["employees"] = _integer(1, 100000)
        case 6:
            dish = draw.choice(DISHES)
            text = draw.choice(
                (
                    f"My {dish} takes {count} minutes and serves {draw.randint(2, 8)}.",
                    f"{who}'s recipe for {dish}: ready in {count} minutes, with onions, butter and salt.",
                    f"How do I make {dish} for {draw.randint(2, 8)} people in {count} minutes?",
                )
            )
            ingredients = {"type": "array", "items": _string(20), "minItems": 2, "maxItems": 5}
            fields = {"dish": _string(30), "minutes": _integer(1, 600), "servings": _integer(1, 20)}
            fields |= {"ingredients": ingredients, "vegetarian": {"type": "boolean"}}
        case 7:
            text = draw.choice(
                (
                    f"{person} owes {other} {price} dollars since {month} {year}.",
                    f"Invoice {draw.randint(1000, 9999)}: {company} bills {person} {price}.{draw.randint(10, 99)} EUR.",
                    f"{other} sent {price} dollars to {person} on {month} {day}, {year}.",
                )
            )
            fields = {"payer": _string(40), "payee": _string(40), "amount": {"type": "number"}}
            fields |= {"currency": {"enum": ["EUR", "USD", "GBP"]}, "paid": {"type": "boolean"}}
        case _:
            system = draw.choice(("Windows", "macOS", "Linux", "Android", "the web app"))
            text = draw.choice(
                (
                    f"Since the update my app crashes on {system} whenever I open the settings. {who}",
                    f"Hello, {who} here. I cannot log in on {system}, error {draw.randint(100, 999)}. It is urgent.",
                    f"The export button does nothing on {system}. Version {draw.randint(1, 9)}.{draw.randint(0, 9)}.",
                )
            )
            fields = {"problem": _string(60), "system": _string(20), "urgent": {"type": "boolean"}}
            fields |= {"user": _string(40), "priority": {"enum": ["low", "normal", "high"]}}
    return text, fields


def _extraction(draw: random.Random) -> Task:
    text, fields = _record(draw)
    names = [name for name in fields if draw.random() < 0.75] or list(fields)[:2]
    if draw.random() < 0.3:
        draw.shuffle(names)
    properties = {name: fields[name] for name in names}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": names}
    schema["additionalProperties"] = False
    told = draw.choice(
        (
            "",
            "",
            "Extract the data as JSON.\n",
            f"Return JSON with the fields {', '.join(names)}.\n",
            "Read the text and fill in the form.\n\nText: ",
            "Turn this into a JSON object: ",
        )
    )
    return Task("extraction", told + text, schema=json.dumps(schema))


def _tool_call(draw: random.Random) -> Task:
    tools: dict[str, dict[str, Any]] = {
        "play_music": {"artist": _string(30), "volume": _integer(0, 100)},
        "send_message": {"to": _string(30), "text": _string(60)},
        "get_forecast": {"place": _string(30), "days": _integer(1, 14)},
        "add_reminder": {"text": _string(40), "time": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"}},
        "find_recipe": {"dish": _string(30), "vegetarian": {"type": "boolean"}},
        "turn_on_lights": {"room": {"enum": ["kitchen", "bedroom", "bathroom", "hall"]}, "percent": _integer(1, 100)},
        "look_up_word": {"word": _string(20), "language": {"enum": ["en", "de", "fr", "es"]}},
        "buy_ticket": {"city": _string(30), "count": _integer(1, 9)},
    }
    first, city = draw.choice(FIRST), draw.choice(CITIES)
    hour = f"{draw.randint(0, 23):02}:{draw.choice(('00', '15', '30', '45'))}"
    wishes = {
        "play_music": f"Play something by {first} {draw.choice(LAST)} at volume {draw.randint(1, 99)}.",
        "send_message": f"Tell {first} that I am late for {draw.choice(EVENTS)}.",
        "get_forecast": f"What will the weather be like in {city} over the next {draw.randint(2, 14)} days?",
        "add_reminder": f"Remind me at {hour} to call {first} about the {draw.choice(THINGS)}.",
        "find_recipe": f"I'd like to cook {draw.choice(DISHES)} without meat for {first}.",
        "turn_on_lights": f"{first} wants the {draw.choice(('kitchen', 'bedroom', 'hall'))} lights at "
        f"{draw.randint(5, 100)} percent.",
        "look_up_word": f"What does {draw.choice(THINGS)} mean in {draw.choice(('German', 'French', 'Spanish'))}, "
        f"asks {first}.",
        "buy_ticket": f"Get {draw.randint(2, 9)} tickets to {city} for {first}.",
    }
    chosen = draw.sample(list(tools), 3)
    listed = "\n".join(f"{name}({', '.join(tools[name])})" for name in chosen)
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"const": name},
                "arguments": {
                    "type": "object",
                    "properties": tools[name],
                    "required": list(tools[name]),
                    "additionalProperties": False,
                },
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for name in chosen
    ]
    told = draw.choice(("Call one of these functions.", "You have these tools:", "Answer with a call of a tool."))
    prompt = f"{told}\n{listed}\n\n{wishes[draw.choice(chosen)]}"
    return Task("tool call", prompt, schema=json.dumps({"anyOf": calls}))


def _short(draw: random.Random) -> Task:
    """A short answer of a regular expression."""
    number = draw.randint(2, 99)
    match draw.randrange(7):
        case 0:
            place, what = draw.choice(COUNTRIES), draw.choice(("independence", "its constitution", "its first railway"))
            return Task("pattern", f"When did {place} get {what}?", pattern=r"(1[5-9]|20)[0-9]{2}")
        case 1:
            what = f"{draw.choice(FIRST)} has {number} {draw.choice(THINGS)}s and gives away {draw.randint(1, number)}."
            return Task("pattern", f"{what} How many are left?", pattern=r"[0-9]{1,3} [a-z ]{3,30}\.")
        case 2:
            name = f"{draw.choice(FIRST)} {draw.choice(LAST)}"
            prompt = f"What could the e-mail address of {name} at {draw.choice(COMPANIES)} be?"
            return Task("pattern", prompt, pattern=r"[a-z.]{3,20}@[a-z]{3,20}\.(com|org|net)")
        case 3:
            prompt = f"Is {draw.choice(TOPICS)} worth learning about for a {draw.choice(JOBS)}? Say why."
            return Task("pattern", prompt, pattern=r"(Yes|No), because [A-Za-z ,']{20,160}\.")
        case 4:
            prompt = f"Give {draw.choice(FIRST)} three {draw.choice(LISTS)} as a numbered list."
            return Task(
                "pattern", prompt, pattern=r"1\. [A-Za-z ,']{3,50}\n2\. [A-Za-z ,']{3,50}\n3\. [A-Za-z ,']{3,50}"
            )
        case 5:
            month, day = draw.choice(MONTHS), draw.randint(1, 28)
            prompt = f"Write {month} {day}, {draw.randint(1900, 2030)} as a date of numbers."
            return Task("pattern", prompt, pattern=r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
        case _:
            prompt = f"What is the capital of {draw.choice(COUNTRIES)}, and how far is it from {draw.choice(CITIES)}?"
            return Task("pattern", prompt, pattern=r"[A-Z][a-z]{2,15}, (about )?[0-9]{2,5} (km|miles)")


def _free(draw: random.Random) -> Task:
    topic, style = draw.choice(TOPICS), draw.choice(STYLES)
    job, city, first = draw.choice(JOBS), draw.choice(CITIES), draw.choice(FIRST)
    match draw.randrange(8):
        case 0 | 1:
            asked = draw.choice(
                (
                    f"Explain {topic} {style}.",
                    f"What is important to know about {topic}? Answer {style}.",
                    f"Why does {topic} matter to a {job}?",
                    f"Tell {first} something surprising about {topic} {style}.",
                    f"How would a {job} describe {topic}?",
                    f"What should I see in {city} if I am interested in {topic}?",
                )
            )
            return Task("question", asked)
        case 2:
            text = " ".join(_record(draw)[0] for _ in range(draw.randint(2, 3)))
            told = draw.choice(("Summarise", "Summarize in one sentence", "Say in other words", "Make a headline of"))
            return Task("summary", f"{told}: {text}")
        case 3:
            table, columns = draw.choice(list(TABLES.items()))
            one, two = draw.sample(columns, 2)
            told = draw.choice(
                (
                    f"lists {one} and {two}, ordered by {two}",
                    f"counts the rows for each {one}",
                    f"finds the {draw.randint(2, 50)} rows with the greatest {one}",
                    f"shows the average {one} by {two}",
                    f"selects rows where {one} is {draw.randint(1, 500)} or more and {two} is not null",
                )
            )
            return Task("sql", f"Write an SQL query on the table {table}({', '.join(columns)}) that {told}.")
        case 4:
            name = draw.choice(("", f" Name it {draw.choice(('solve', 'run', 'compute', 'apply', 'process'))}."))
            language = draw.choice(LANGUAGES)
            told = draw.choice(("", " Add a short comment.", " Show how it is called.", " Keep it short."))
            return Task("code", f"Write a function in {language} that {draw.choice(FUNCTIONS)}.{name}{told}")
        case 5:
            prompt = f"{draw.choice(('List', 'Give me', 'Name', 'I need'))} {draw.randint(3, 9)} {draw.choice(LISTS)}"
            return Task("list", f"{prompt}{draw.choice(('.', f' for a {job}.', f' for {first}.'))}")
        case 6:
            what = draw.choice(
                ("an e-mail", "a short letter", "a text message", "a thank-you note", "a poem", "a story")
            )
            to = f"{what} to {first}, a {job}" if "poem" not in what and "story" not in what else f"{what} for {first}"
            return Task("writing", f"Write {to}, about {draw.choice((topic, draw.choice(EVENTS)))}.")
        case _:
            text, fields = _record(draw)
            return Task("free json", f"Extract {', '.join(fields)} as JSON from this text: {text}")


def tasks(seed: int) -> Iterator[Task]:
    """Different prompts without end, none of which is a prompt of the benchmarks; every second under a grammar."""
    draw, known = random.Random(seed), _benchmark_texts()
    seen: set[str] = set()
    while True:
        constrained = len(seen) % 2 == 0
        made = draw.choices((_extraction, _tool_call, _short), (5, 3, 2))[0] if constrained else _free
        task = made(draw)
        text = _plain(task.prompt)
        if text in seen or len(text.split()) > WORDS or any(each in text or text in each for each in known):
            continue
        seen.add(text)
        yield task


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _benchmark_texts() -> list[str]:
    """The prompts of the benchmarks and of the demo, which are not trained on."""
    from benchmarks.extraction_cases import CASES

    texts = [entry["prompt"] for entry in json.loads((HERE / "prompts.json").read_text("utf-8"))]
    texts += [entry["prompt"] for entry in json.loads((HERE / "tool_prompts.json").read_text("utf-8"))["prompts"]]
    texts += [text for cases in CASES.values() for text in cases]
    for entries in json.loads((HERE / "text_prompts.json").read_text("utf-8")).values():
        texts += [entry if isinstance(entry, str) else entry["prompt"] for entry in entries]
    return [_plain(text) for text in [*texts, "In which year did World War II end?"]]


# ---------------------------------------------------------------------- answers
class Recorder:
    """Drafts nothing, and keeps what the target computes: a proposer that listens.

    Attributes:
        hidden: ``float16[tokens read, hidden size]`` for each text of the batch.
        masks: the number of the mask of each token of each text in ``table``; -1 without a grammar.
        table: the different masks, ``int32[words]`` each, as bytes.
    """

    name = "recorder"
    runs_model = False
    hidden_layers: Sequence[int] = (-1,)
    passes = 0

    def start(self, batch: BatchView) -> None:
        count = len(batch.sequences)
        self._batch, self._rows, self._read = batch, list(range(count)), [0] * count
        self._parts: list[list[torch.Tensor]] = [[] for _ in range(count)]
        self.masks: list[list[int]] = [[] for _ in range(count)]
        self.table: dict[bytes, int] = {}

    def select(self, rows: Sequence[int]) -> None:
        self._rows = [self._rows[row] for row in rows]
        self._read = [self._read[row] for row in rows]

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        pass

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        hidden = self._batch.target.hidden[-1].to(torch.float16)
        for row, text in enumerate(self._rows):
            new = self._batch.target.lengths[row] - self._read[row]
            self._parts[text].append(hidden[row, -new:].clone())
            self._read[row] += new
            number = -1
            if draft.sequences[row].matcher is not None:
                number = self.table.setdefault(draft.mask_rows(row)[0].tobytes(), len(self.table))
            self.masks[text].append(number)

    @property
    def hidden(self) -> list[torch.Tensor]:
        return [torch.cat(parts) for parts in self._parts]


class _Output(torch.nn.Module):
    """An output layer of float32 behind a model of bfloat16, whose own logits would often be equal."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self._weight = weight

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(hidden.float(), self._weight)


def _quicken(model: Any) -> None:
    """Run all but the output layer in bfloat16, which recent CPUs multiply several times faster."""
    if model.device.type == "cpu" and torch.cpu._is_amx_tile_supported():
        weight = model.get_output_embeddings().weight.detach().float().clone()
        model.to(torch.bfloat16)
        model.set_output_embeddings(_Output(weight))


def _share(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    return int(number), int(count)


def answer(options: argparse.Namespace, folder: Path) -> None:
    """Have the model answer prompts until there are enough tokens, or the time is up; one file for each batch."""
    model, tokenizer = load_model(options.model, packed=False)
    vocabulary = vocabulary_of(model, tokenizer)
    _quicken(model)
    source = tasks(options.seed)
    waiting: dict[bool, list[Task]] = {False: [], True: []}
    begin, tokens = time.perf_counter(), 0
    share, shares = options.share
    for number in range(10**6):
        if tokens >= options.tokens or time.perf_counter() - begin > options.minutes * 60:
            break
        constrained = number % 2 == 0
        while len(waiting[constrained]) < options.rows:
            task = next(source)
            waiting[task.schema is not None or task.pattern is not None].append(task)
        part, waiting[constrained] = waiting[constrained][: options.rows], waiting[constrained][options.rows :]
        path = folder / f"{number:05}.pt"
        if number // 2 % shares != share or path.exists():
            continue
        draw, requests = random.Random(options.seed * 10**6 + number), []
        constraints: dict[tuple[str | None, str | None, str], Any] = {}  # of a few hundred, too much would be kept
        for place, task in enumerate(part):
            matcher = None
            if constrained:
                key = task.schema, task.pattern, draw.choice(("compact", "compact", "flexible"))
                if key not in constraints:
                    grammar = gs.regex(task.pattern) if task.pattern else gs.json_schema(key[0], whitespace=key[2])
                    constraints[key] = gs.compile(grammar, vocabulary)
                matcher = constraints[key].matcher()
            most = LENGTHS["grammar" if constrained else "free"]
            temperature = draw.choice((0.0, 0.7, 1.0))
            seed = number * options.rows + place
            sampling = Sampling(temperature=temperature, seed=seed, max_tokens=most)
            requests.append(Request(prompt=encode_prompt(tokenizer, task.prompt), matcher=matcher, sampling=sampling))
        recorder, started = Recorder(), time.perf_counter()
        found = generate_batch(model, requests, vocabulary, proposers=[recorder], gamma=1, adaptive=False)
        texts = [[*request.prompt, *text.tokens] for request, [text] in zip(requests, found, strict=True)]
        masks = recorder.masks
        torch.save(
            {
                "kinds": [task.kind for task in part],
                "tokens": [torch.tensor(text, dtype=torch.int32) for text in texts],
                "prompts": [len(request.prompt) for request in requests],
                "hidden": recorder.hidden,
                "masks": [torch.tensor(each, dtype=torch.int32) for each in masks],
                "table": [torch.frombuffer(bytearray(mask), dtype=torch.int32) for mask in recorder.table],
                "temperatures": [request.sampling.temperature for request in requests],
            },
            path.with_suffix(".part"),
        )
        path.with_suffix(".part").rename(path)
        new = sum(map(len, masks))
        tokens += new
        seconds = time.perf_counter() - started
        print(f"{path.name}: {new} tokens, {new / seconds:.0f} tokens/s, {tokens} in all", flush=True)


# ---------------------------------------------------------------------- training
@dataclass(frozen=True)
class Text:
    """A prompt and its answer, as the model has read it.

    Attributes:
        kind: what was asked for.
        tokens: ``int64[read]``, all but the last token of the answer.
        hidden: ``float16[read, hidden size]``, the hidden states behind them.
        prompt: the number of tokens of the prompt.
        masks: ``int64[read]``, the mask behind each token, by its number in the table of all masks; 0 allows any token.
    """

    kind: str
    tokens: torch.Tensor
    hidden: torch.Tensor
    prompt: int
    masks: torch.Tensor


@dataclass(frozen=True)
class Examples:
    """Several texts side by side, padded on the right.

    Attributes:
        tokens: ``int64[rows, length]``.
        hidden: ``float32[rows, length, hidden size]``, behind the tokens before.
        following: ``float32[rows, length, hidden size]``, behind the tokens.
        masks: ``int64[rows, length]``.
        counted: ``bool[rows, length]``, where the model had a choice in its answer.
        kinds: of each text.
    """

    tokens: torch.Tensor
    hidden: torch.Tensor
    following: torch.Tensor
    masks: torch.Tensor
    counted: torch.Tensor
    kinds: list[str]


def read_texts(folder: Path, words: int) -> tuple[list[Text], list[Text], torch.Tensor]:
    """The texts to be trained on, those that are held out, and the table of masks, ``int32[masks, words]``."""
    table: dict[bytes, int] = {b"\xff" * 4 * words: 0}
    train: list[Text] = []
    held: list[Text] = []
    for path in sorted(folder.glob("*.pt")):
        file = torch.load(path, weights_only=True)
        numbers = [0, *(table.setdefault(mask.numpy().tobytes(), len(table)) for mask in file["table"])]
        places = torch.tensor(numbers)
        for row, kind in enumerate(file["kinds"]):
            hidden, prompt = file["hidden"][row], file["prompts"][row]
            masks = torch.zeros(len(hidden), dtype=torch.int64)
            masks[prompt - 1 :] = places[file["masks"][row].long() + 1]
            tokens = file["tokens"][row][: len(hidden)].long()
            (held if row % HELD_OUT == HELD_OUT - 1 else train).append(Text(kind, tokens, hidden, prompt, masks))
    return train, held, torch.frombuffer(bytearray(b"".join(table)), dtype=torch.int32).reshape(len(table), words)


def side_by_side(texts: Sequence[Text], free: torch.Tensor) -> Examples:
    """Texts as tensors.

    Args:
        texts: the texts.
        free: ``bool[masks]``, which masks allow more than one token.
    """
    length, size = max(len(text.tokens) for text in texts) - 1, texts[0].hidden.shape[1]
    shape = len(texts), length
    tokens, masks = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64)
    hidden, following = torch.zeros(*shape, size), torch.zeros(*shape, size)
    counted = torch.zeros(shape, dtype=torch.bool)
    for row, text in enumerate(texts):
        count = len(text.tokens) - 1
        tokens[row, :count], masks[row, :count] = text.tokens[1:], text.masks[1:]
        hidden[row, :count], following[row, :count] = text.hidden[:-1], text.hidden[1:]
        counted[row, max(text.prompt - 2, 0) : count] = True
    return Examples(tokens, hidden, following, masks, counted & free[masks], [text.kind for text in texts])


def steps_of(
    head: EagleHead, embedded: torch.Tensor, hidden: torch.Tensor, depth: int, start: int = 0
) -> Iterator[torch.Tensor]:
    """What the head predicts behind each token, after reading more and more of its own predictions before it.

    The ``k``-th step at a position reads the target's hidden states up to ``k - 1`` positions before, and its own from
    there on, as in a draft of ``k`` tokens.

    Args:
        head: the head.
        embedded: ``[rows, length, hidden size]``, embeddings of the tokens.
        hidden: ``[rows, length, hidden size]``, the target's hidden states behind the tokens before.
        depth: the number of steps.
        start: the first position that is asked for; what is yielded for the next ``depth - 1`` is of no use, too.

    Yields:
        ``[rows, length - start, hidden size]``, hidden states behind the tokens.
    """
    places = torch.arange(embedded.shape[1])
    keys: list[torch.Tensor] = []
    values: list[torch.Tensor] = []
    reached = places
    for step in range(depth):
        joined = head.joined(embedded, hidden)
        query, key, value = head.heads(joined, reached[None].expand(len(embedded), -1))
        keys.append(key)
        values.append(value)
        # Keys of the first step up to where predictions begin, and one of each later step.
        seen = [places[None] <= reached[:, None] - step]
        seen += [reached[None] == reached[:, None] - step + back for back in range(1, step + 1)]
        mask = torch.cat(seen, -1)
        # Near the beginning nothing is seen: such places are of no use, and see themselves.
        mask[:step, -len(reached) :] |= torch.eye(len(reached), dtype=torch.bool)[:step]
        found = head.finish(joined, query, torch.cat(keys, 2), torch.cat(values, 2), mask[None, None])
        if step == 0:
            reached, embedded, hidden, found = (places[start:], *(x[:, start:] for x in (embedded, hidden, found)))
        yield found
        hidden = torch.cat((hidden[:, :1], found[:, :-1]), 1).to(hidden.dtype)


def bits(table: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Which of some tokens each mask allows: ``bool[masks, tokens]``."""
    return (table[:, tokens // 32] >> (tokens % 32).int()).bitwise_and(1).bool()


def select_tokens(texts: Sequence[Text], model: Any, count: int) -> torch.Tensor:
    """The tokens that the head can draft: three quarters by the model's own use, the others of the shortest merges.

    Args:
        texts: the texts to be trained on.
        model: the target.
        count: how many.

    Returns:
        ``int64[count]``, ascending.
    """
    rows = model.get_output_embeddings().weight
    score = torch.zeros(len(rows))
    for text in texts:
        score += torch.bincount(text.tokens[text.prompt :], minlength=len(rows))
    for text in texts[:: max(len(texts) // 200, 1)]:
        score += functional.linear(text.hidden[text.prompt - 1 :].float(), rows).softmax(-1).sum(0)
    best = score.topk(count * 3 // 4).indices.tolist()
    known = set(best)
    first = [token for token in range(len(rows)) if token not in known]
    return torch.tensor(sorted([*best, *first[: count - len(best)]]))


def new_head(model: Any, width: int) -> EagleHead:
    """A head that at first hands on the hidden state that it reads."""
    config = EagleConfig.like(model, width)
    head = EagleHead(config)
    norm = model.get_decoder().norm.weight.detach().float()
    with torch.no_grad():
        for layer in (head.join, head.query, head.key, head.value, head.gate, head.up):
            layer.weight.normal_(std=0.02)
        for layer in (head.output, head.down):
            layer.weight.normal_(std=0.002)
        head.join.weight[:, config.hidden_size :] += torch.eye(config.hidden_size)
        head.final_norm.weight.copy_(norm)
        size = norm.abs().clamp(min=float(norm.abs().median()) / 10)
        head.hidden_norm.weight.copy_(norm.sign() / size * float(size.mean()))
    return head


def train(options: argparse.Namespace, model: Any, folder: Path) -> None:
    """Train a head on the texts, and keep the last state in ``head.safetensors``."""
    torch.manual_seed(options.seed)
    embedding, rows = model.get_input_embeddings(), model.get_output_embeddings().weight.detach()
    texts, _, table = read_texts(folder, (len(rows) + 31) // 32)
    if options.resume:
        saved = Eagle.load(options.resume)
        head, tokens = saved.head, saved.tokens
    else:
        head, tokens = new_head(model, options.width), select_tokens(texts, model, options.selected)
    allowed = bits(table, tokens)
    free = bits(table, torch.arange(len(rows))).sum(-1) > 1
    # Nothing can be learnt where the head knows none of the tokens.
    learnt = free & (allowed.sum(-1) > 1)
    rows = rows[tokens]
    count = sum(weight.numel() for weight in head.parameters())
    answers = sum(len(text.tokens) - text.prompt + 1 for text in texts)
    print(f"{len(texts)} texts, {answers} tokens of answers; {len(table)} masks; {count} weights", flush=True)
    decayed = [weight for weight in head.parameters() if weight.ndim > 1]
    others = [weight for weight in head.parameters() if weight.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=options.rate, betas=(0.9, 0.95))
    draw = random.Random(options.seed * 1000 + options.share[0])
    waiting: list[list[Text]] = []
    begin, step, seen, losses = time.perf_counter(), 0, 0, [0.0] * options.depth
    card: dict[str, Any] = {"texts": len(texts), "tokens": answers, "selected": len(tokens), "weights": count}
    while (progress := (time.perf_counter() - begin) / (options.train_minutes * 60)) < 1:
        if not waiting:
            # Texts with prompts of similar lengths are read together.
            order = sorted(texts, key=lambda text: text.prompt * draw.uniform(0.9, 1.1))
            waiting = [order[place : place + options.batch] for place in range(0, len(order), options.batch)]
            draw.shuffle(waiting)
        part = waiting.pop()
        examples, start = side_by_side(part, learnt), max(min(text.prompt for text in part) - 2 - options.depth, 0)
        counted, depth = examples.counted, min(options.depth, 1 + int(1.5 * progress * options.depth))  # drafts grow
        rate = options.rate * min(1, (step + 1) / 50) * (0.02 + 0.98 * (1 + math.cos(math.pi * progress)) / 2)
        for group in optimiser.param_groups:
            group["lr"] = rate
        with torch.autocast("cpu", torch.bfloat16):
            embedded, hidden = embedding(examples.tokens).float().detach(), examples.hidden
            # Behind what other proposers have drafted, hidden states are not known.
            missing = (torch.rand(len(hidden), 1) < 0.25) & _spans(*counted.shape)
            hidden = torch.where(missing[..., None], head.unknown, hidden)
            mask = allowed[examples.masks[counted]]
            with torch.no_grad():
                scores = functional.linear(examples.following[counted], rows).float()
                target = scores.masked_fill_(~mask, -torch.inf).softmax(-1).to(torch.bfloat16)
            total = torch.zeros(())
            for place, found in enumerate(steps_of(head, embedded, hidden, depth, start)):
                states = found[counted[:, start:]]
                scores = functional.linear(states, rows).float().masked_fill(~mask, -1e4)
                loss = -(target * scores.log_softmax(-1)).sum(-1).mean()
                near = functional.smooth_l1_loss(states.float(), examples.following[counted])
                total = total + (loss + options.regression * near) * 0.8**place
                losses[place] += loss.item()
        optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        step, seen = step + 1, seen + int(counted.sum())
        if step % 50 == 0:
            seconds = time.perf_counter() - begin
            means = ", ".join(f"{loss / 50:.3f}" for loss in losses)
            print(f"step {step}, {seconds:.0f} s, {seen} tokens: {means}; near {near.item():.3f}", flush=True)
            losses = [0.0] * options.depth
        if step % options.every == 0:
            _average(head, tokens, card, options.work, *options.share)
    trained = {"steps": step, "passes over each token": round(seen / answers, 1)}
    trained["seconds of training"] = round(time.perf_counter() - begin)
    _average(head, tokens, card | trained, options.work, *options.share)


def _average(head: EagleHead, tokens: torch.Tensor, card: dict[str, Any], work: Path, share: int, shares: int) -> None:
    """Keep a head, and train on with the mean of all that are trained side by side (local SGD: Stich 2019).

    Where cores are shared with others, several processes of one thread each wait less than one of several threads.
    """
    _save(work / f"head-{share}.safetensors", head, tokens, card)
    others = [work / f"head-{number}.safetensors" for number in range(shares) if number != share]
    heads = [Eagle.load(path).head.state_dict() for path in others if path.exists()]
    mean = {
        name: sum((other[name] for other in heads), mine) / (len(heads) + 1) for name, mine in head.state_dict().items()
    }
    head.load_state_dict(mean)
    _save(work / "head.safetensors", head, tokens, card)


def _spans(rows: int, length: int) -> torch.Tensor:
    """``bool[rows, length]``, spans of one to eight tokens, some one in eight tokens of a text."""
    begins = torch.rand(rows, length) < 0.03
    lengths = torch.randint(1, 9, (rows, length))
    found = torch.zeros(rows, length, dtype=torch.bool)
    for back in range(8):
        found[:, back:] |= (begins & (lengths > back))[:, : length - back]
    return found


def _save(path: Path, head: EagleHead, tokens: torch.Tensor, card: dict[str, Any]) -> None:
    part = path.with_suffix(f".{os.getpid()}")
    Eagle.save(part, head, tokens, card)
    part.rename(path)


# ---------------------------------------------------------------------- evaluation
@torch.no_grad()
def measure(
    head: EagleHead, model: Any, tokens: torch.Tensor, texts: Sequence[Text], table: torch.Tensor, depth: int = 4
) -> dict[str, Any]:
    """What is accepted of the head's drafts where the grammar leaves a choice.

    Args:
        head: the head.
        model: the target.
        tokens: ``int64[selected]``, the tokens that the head can draft.
        texts: the texts.
        table: ``int32[masks, words]``, the masks.
        depth: the number of draft tokens.

    Returns:
        by kind of text, and for all: the acceptance at temperature 1, the mean of ``sum(min(p, q))``, and how often the
        most probable tokens are the same, each for drafts of one to ``depth`` tokens of the text itself; and the number
        of tokens.
    """
    rows = model.get_output_embeddings().weight.detach()
    every = torch.arange(len(rows))
    free = bits(table, every).sum(-1) > 1
    sums: dict[str, torch.Tensor] = {}
    order = sorted(texts, key=lambda text: len(text.tokens))
    for place in range(0, len(order), 8):
        part = order[place : place + 8]
        examples = side_by_side(part, free)
        counted = examples.counted.clone()
        for row, text in enumerate(part):
            counted[row, : max(text.prompt - 1, depth)] = False  # nothing is drafted before the model's first token
        if not counted.any():
            continue
        used, numbers = examples.masks[counted].unique(return_inverse=True)
        mask = bits(table[used], every)[numbers]
        p = functional.linear(examples.following[counted], rows).masked_fill(~mask, -torch.inf).softmax(-1)
        kinds = [kind for kind, line in zip(examples.kinds, counted, strict=True) for _ in range(int(line.sum()))]
        embedded = model.get_input_embeddings()(examples.tokens).float()
        figures = []
        for found in steps_of(head, embedded, examples.hidden, depth):
            scores = functional.linear(found[counted], rows[tokens]).masked_fill(~mask[:, tokens], -torch.inf)
            some = scores.softmax(-1).nan_to_num()  # where the head knows none of the tokens
            accepted = torch.minimum(p[:, tokens], some).sum(-1)
            same = tokens[scores.argmax(-1)] == p.argmax(-1)
            figures += [accepted, same.float() * (some.sum(-1) > 0)]
        lines = torch.stack([*figures, torch.ones(len(p))], -1).double()
        for kind in {*kinds}:
            chosen = torch.tensor([each == kind for each in kinds])
            sums[kind] = sums.get(kind, 0) + lines[chosen].sum(0)
    sums["all"] = torch.stack([*sums.values()]).sum(0)
    result = {}
    for kind, line in sorted(sums.items()):
        means = (line[:-1] / line[-1]).tolist()
        result[kind] = {
            "acceptance": [round(value, 3) for value in means[::2]],
            "greedy": [round(value, 3) for value in means[1::2]],
            "tokens": int(line[-1]),
        }
    return result


def evaluate(options: argparse.Namespace, model: Any, folder: Path) -> None:
    """Measure the head on the texts that were held out, print it, and write the weights with their card."""
    path = options.work / "head.safetensors"
    eagle = Eagle.load(path)
    rows = model.get_output_embeddings().weight
    _, held, table = read_texts(folder, (len(rows) + 31) // 32)
    found = measure(eagle.head, model, eagle.tokens, held, table)
    for kind, figures in found.items():
        print(kind, json.dumps(figures), flush=True)
    card = {**eagle.card, "held out": {"texts": len(held), "kinds": found}}
    if options.output:
        _save(options.output, eagle.head, eagle.tokens, card)
        options.output.with_suffix(".json").write_text(json.dumps(card, indent=1) + "\n", "utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="directory for texts and hidden states")
    parser.add_argument("--model", default="smollm2", help="as for grammarspec generate (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=32, help="texts that are written side by side (%(default)s)")
    parser.add_argument("--tokens", type=int, default=600_000, help="of answers, to be trained on (%(default)s)")
    parser.add_argument("--minutes", type=float, default=25, help="for writing them, at most (%(default)s)")
    parser.add_argument("--selected", type=int, default=8000, help="tokens that the head can draft (%(default)s)")
    parser.add_argument("--width", type=int, default=1792, help="of the head's inner layer (%(default)s)")
    parser.add_argument("--depth", type=int, default=2, help="draft tokens that the head is trained on (%(default)s)")
    parser.add_argument("--batch", type=int, default=24, help="texts of a step of training (%(default)s)")
    parser.add_argument("--rate", type=float, default=1.5e-3, help="the learning rate (%(default)s)")
    parser.add_argument("--regression", type=float, default=0.2, help="weight of hidden states (%(default)s)")
    parser.add_argument("--train-minutes", type=float, default=25, help="for training (%(default)s)")
    parser.add_argument("--every", type=int, default=50, help="steps between two states that are kept (%(default)s)")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="train this head on, not a new one")
    parser.add_argument("--only", choices=STEPS, action="append", help="what to do (all)")
    parser.add_argument("--output", type=Path, help="write weights and card here")
    parser.add_argument("--share", type=_share, default=(0, 1), help="K/N: write the K-th of N parts, from 0")
    parser.add_argument("--threads", type=int, help="of torch (all cores)")
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    folder = options.work / "texts"
    folder.mkdir(parents=True, exist_ok=True)
    for step in options.only or STEPS:
        if step == "answer":
            answer(options, folder)
        else:
            model, _ = load_model(options.model, packed=False)
            model.requires_grad_(False)
            (train if step == "train" else evaluate)(options, model, folder)


if __name__ == "__main__":
    main()
