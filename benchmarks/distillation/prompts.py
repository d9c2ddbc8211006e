"""Prompts made of templates: a seed goes in; different prompts come out without end, with what answers must be.

None of them is a prompt of the benchmarks.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.distillation.words import (
    CITIES,
    COLOURS,
    COMPANIES,
    COUNTRIES,
    DISHES,
    EVENTS,
    FIRST,
    FUNCTIONS,
    JOBS,
    LANGUAGES,
    LAST,
    LISTS,
    MONTHS,
    PLACES,
    STYLES,
    TABLES,
    THINGS,
    TOPICS,
)

__all__ = ["Task", "tasks"]

BENCHMARKS = Path(__file__).parents[1]
WORDS = 80  # of a prompt at most


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

    texts = [entry["prompt"] for entry in json.loads((BENCHMARKS / "prompts.json").read_text("utf-8"))]
    texts += [entry["prompt"] for entry in json.loads((BENCHMARKS / "tool_prompts.json").read_text("utf-8"))["prompts"]]
    texts += [text for cases in CASES.values() for text in cases]
    for entries in json.loads((BENCHMARKS / "text_prompts.json").read_text("utf-8")).values():
        texts += [entry if isinstance(entry, str) else entry["prompt"] for entry in entries]
    return [_plain(text) for text in [*texts, "In which year did World War II end?"]]
