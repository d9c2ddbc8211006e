"""Sixty-four texts with the fields that are to be found in each: eight types, and eight texts for each.

The texts were written for this purpose. Some fields say in their description what their name does not (a unit, which of
two names, what a category means), as fields of real types do.
"""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, Field

__all__ = ["CASES"]


class Person(BaseModel):
    name: str = Field(max_length=30)
    age: int = Field(ge=0, le=120)
    city: str = Field(max_length=30, description="where the person lives now")


class Order(BaseModel):
    """An order of a customer in a shop."""

    product: str = Field(max_length=30)
    quantity: int = Field(ge=1, le=1000)
    total: float = Field(ge=0, le=100000, description="the price of all pieces together")
    express: bool = Field(description="whether it is to be delivered quickly")


class Event(BaseModel):
    title: str = Field(max_length=40)
    day: date
    room: str = Field(max_length=20)


class Review(BaseModel):
    sentiment: Literal["positive", "negative"]
    topic: Literal["price", "service", "quality"] = Field(description="what the review is mostly about")
    stars: int = Field(ge=1, le=5)


class Trip(BaseModel):
    origin: str = Field(max_length=30)
    destination: str = Field(max_length=30)
    hours: int = Field(ge=1, le=100, description="how long it takes")


class Ticket(BaseModel):
    """What a user reports to the support of a software."""

    system: Literal["windows", "macos", "linux"]
    version: str = Field(max_length=10)
    urgent: bool


class Recipe(BaseModel):
    dish: str = Field(max_length=30)
    minutes: int = Field(ge=1, le=600)
    ingredients: list[str] = Field(min_length=2, max_length=4)


class Payment(BaseModel):
    payer: str = Field(max_length=30)
    payee: str = Field(max_length=30, description="who gets the money")
    amount: int = Field(ge=1, le=1000000)
    currency: Literal["EUR", "USD", "GBP"]


def _person(name: str, age: int, city: str) -> dict[str, Any]:
    return {"name": name, "age": age, "city": city}


def _order(product: str, quantity: int, total: float, express: bool) -> dict[str, Any]:
    return {"product": product, "quantity": quantity, "total": total, "express": express}


def _event(title: str, day: str, room: str) -> dict[str, Any]:
    return {"title": title, "day": day, "room": room}


def _review(sentiment: str, topic: str, stars: int) -> dict[str, Any]:
    return {"sentiment": sentiment, "topic": topic, "stars": stars}


def _trip(origin: str, destination: str, hours: int) -> dict[str, Any]:
    return {"origin": origin, "destination": destination, "hours": hours}


def _ticket(system: str, version: str, urgent: bool) -> dict[str, Any]:
    return {"system": system, "version": version, "urgent": urgent}


def _recipe(dish: str, minutes: int, *ingredients: str) -> dict[str, Any]:
    return {"dish": dish, "minutes": minutes, "ingredients": list(ingredients)}


def _payment(payer: str, payee: str, amount: int, currency: str) -> dict[str, Any]:
    return {"payer": payer, "payee": payee, "amount": amount, "currency": currency}


CASES: dict[type[BaseModel], dict[str, dict[str, Any]]] = {
    Person: {
        "Alice is 31 and lives in Paris.": _person("Alice", 31, "Paris"),
        "Bob, 45, moved from Rome to Oslo last year.": _person("Bob", 45, "Oslo"),
        "My neighbour Carla turned 20 in our home town Lima.": _person("Carla", 20, "Lima"),
        "Born in Berlin, Dan, now 67, has settled in Madrid.": _person("Dan", 67, "Madrid"),
        "Erin Walsh (52) runs a bakery in Dublin, where she lives.": _person("Erin Walsh", 52, "Dublin"),
        "At the age of 8, Finn attends a school in Cairo near his home.": _person("Finn", 8, "Cairo"),
        "Gita left Delhi for Tokyo. She is 29.": _person("Gita", 29, "Tokyo"),
        "The 74-year-old pensioner Henry Ford lives in Boston.": _person("Henry Ford", 74, "Boston"),
    },
    Order: {
        "I want 3 lamps for 90 dollars in all, and quickly please.": _order("lamps", 3, 90, True),
        "Please send 12 pencils, 6 euros together. There is no hurry.": _order("pencils", 12, 6, False),
        "We need 2 printers by tomorrow morning; the total is 480.": _order("printers", 2, 480, True),
        "One bicycle for 350 euros, delivered whenever it suits you.": _order("bicycle", 1, 350, False),
        "Express delivery: 40 chairs, 1200 dollars for all of them.": _order("chairs", 40, 1200, True),
        "Order: 5 books, total 62.5, standard delivery.": _order("books", 5, 62.5, False),
        "Urgent! Send 100 masks at once. We pay 75 for them.": _order("masks", 100, 75, True),
        "7 cups for 21 pounds, please. Slow shipping is fine.": _order("cups", 7, 21, False),
    },
    Event: {
        "The budget meeting is on 4 May 2026 in room A12.": _event("budget meeting", "2026-05-04", "A12"),
        "Yoga class, 2026-01-15, Studio 3.": _event("Yoga class", "2026-01-15", "Studio 3"),
        "Join us on December 24, 2025 in the Main Hall for the Carol Evening.": _event(
            "Carol Evening", "2025-12-24", "Main Hall"
        ),
        "Exam in statistics: 30 June 2026, room B2.": _event("Exam in statistics", "2026-06-30", "B2"),
        "On 2027-03-01 the Chess Night takes place in the Library.": _event("Chess Night", "2027-03-01", "Library"),
        "Book the Blue Room for the Design Review on 9 September 2026.": _event(
            "Design Review", "2026-09-09", "Blue Room"
        ),
        "The Spring Concert is on April 2, 2026, in room C7.": _event("Spring Concert", "2026-04-02", "C7"),
        "Safety training, room 101, 17 November 2025.": _event("Safety training", "2025-11-17", "101"),
    },
    Review: {
        "Far too expensive for what you get. 1 star.": _review("negative", "price", 1),
        "The staff were so friendly and helpful! 5 stars.": _review("positive", "service", 5),
        "The zip broke on the second day. Two stars.": _review("negative", "quality", 2),
        "A real bargain, I would buy it again. 4 out of 5.": _review("positive", "price", 4),
        "Nobody answered my emails for weeks. 1/5.": _review("negative", "service", 1),
        "Solid, well made, and it lasts. 5/5.": _review("positive", "quality", 5),
        "The waiter ignored us all evening; two stars.": _review("negative", "service", 2),
        "So cheap that I bought three. Four stars!": _review("positive", "price", 4),
    },
    Trip: {
        "The train from Paris to Lyon takes 2 hours.": _trip("Paris", "Lyon", 2),
        "Flying to Tokyo from London takes 12 hours.": _trip("London", "Tokyo", 12),
        "We left Rome at 8 and reached Naples 3 hours later.": _trip("Rome", "Naples", 3),
        "The bus to Porto starts in Lisbon; the ride lasts 4 hours.": _trip("Lisbon", "Porto", 4),
        "It is a 9 hour drive between Oslo, where we begin, and Bergen.": _trip("Oslo", "Bergen", 9),
        "After 6 hours on the ferry from Kiel they arrived in Malmo.": _trip("Kiel", "Malmo", 6),
        "Destination Delhi, departure from Mumbai, duration 16 hours.": _trip("Mumbai", "Delhi", 16),
        "He walked to Siena from Florence in 15 hours.": _trip("Florence", "Siena", 15),
    },
    Ticket: {
        "On my Mac, version 2.4 crashes. Please help at once!": _ticket("macos", "2.4", True),
        "Version 10.1 on Ubuntu shows a small typo in the menu. No rush.": _ticket("linux", "10.1", False),
        "Windows 11 here. Since 3.0.2 nobody in our office can work!": _ticket("windows", "3.0.2", True),
        "It would be nice if 1.9 for Windows had a dark mode some day.": _ticket("windows", "1.9", False),
        "Our Debian server is down since the update to 5.6, this is critical.": _ticket("linux", "5.6", True),
        "A minor thing on macOS: 4.2 draws the icon too large.": _ticket("macos", "4.2", False),
        "Fedora, release 7.7: data is being lost right now!": _ticket("linux", "7.7", True),
        "When you find the time: 8.3 on my MacBook scrolls slowly.": _ticket("macos", "8.3", False),
    },
    Recipe: {
        "Omelette: whisk eggs and milk, 10 minutes.": _recipe("Omelette", 10, "eggs", "milk"),
        "For pancakes you need flour, eggs and milk. It takes 20 minutes.": _recipe(
            "pancakes", 20, "flour", "eggs", "milk"
        ),
        "Tomato soup takes half an hour: tomatoes, onions, cream.": _recipe(
            "Tomato soup", 30, "tomatoes", "onions", "cream"
        ),
        "In 15 minutes you make guacamole from avocados and limes.": _recipe("guacamole", 15, "avocados", "limes"),
        "Rice pudding, 45 minutes, made of rice, milk and sugar.": _recipe("Rice pudding", 45, "rice", "milk", "sugar"),
        "Bread needs flour, water, salt and yeast, and 3 hours.": _recipe(
            "Bread", 180, "flour", "water", "salt", "yeast"
        ),
        "Lemonade: lemons, sugar, water. 5 minutes.": _recipe("Lemonade", 5, "lemons", "sugar", "water"),
        "Cook pasta with garlic and oil in 12 minutes.": _recipe("pasta", 12, "garlic", "oil"),
    },
    Payment: {
        "Anna pays Ben 50 euros.": _payment("Anna", "Ben", 50, "EUR"),
        "Carl got 200 dollars from Dora.": _payment("Dora", "Carl", 200, "USD"),
        "Emil sent 75 pounds to Frida.": _payment("Emil", "Frida", 75, "GBP"),
        "From Gus to Hana: $1000.": _payment("Gus", "Hana", 1000, "USD"),
        "Ines received €35, which Jon owed her.": _payment("Jon", "Ines", 35, "EUR"),
        "Kim transferred £420 to Leo yesterday.": _payment("Kim", "Leo", 420, "GBP"),
        "Mia has been paid 15 euros by Noah.": _payment("Noah", "Mia", 15, "EUR"),
        "Olga lends Paul 600 dollars.": _payment("Olga", "Paul", 600, "USD"),
    },
}
