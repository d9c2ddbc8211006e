"""What the templates of prompts are filled with: names, things, subjects, and how answers are to be written."""

from __future__ import annotations


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
