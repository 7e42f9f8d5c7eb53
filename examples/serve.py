"""
Tags over HTTP
==============

One process serves a saved model, with a request for each text::

    pip install fastapi uvicorn
    sklearn-xc fit train.csv --text title --labels subjects --separator ";" --out works.model
    XC_MODEL=works.model uvicorn --app-dir examples serve:app
    curl -s localhost:8000/tags -H "content-type: application/json" -d '{"text": "a harbour"}'

The model is opened when the process starts, and its pages are shared with other processes on the
machine that open it. Requests are answered in the server's threads: many threads may ask an
estimator at once.

Watch out: there is no authentication, and no limit on the length of a text; put the server behind a
proxy that has both. Scores are probabilities only if the model gives them (``TopKCalibrator``). To
replace a model that is being served, save over it and restart; do not edit its files.
"""

import os
from contextlib import asynccontextmanager

from fastapi import FastAPI
from pydantic import BaseModel, Field

import sklearn_xc


class Question(BaseModel):
    """A text, and how many tags are wanted."""

    text: str
    k: int = Field(default=5, ge=1, le=100)


class Tag(BaseModel):
    """A tag and its score."""

    name: str
    score: float


state = {}


@asynccontextmanager
async def lifespan(app):
    """Open the model, and ask it once: loops are read from the cache before anybody waits."""
    state["model"] = sklearn_xc.load(os.environ["XC_MODEL"])
    tags("", 1)
    yield


app = FastAPI(lifespan=lifespan)


def tags(text, k):
    """Return the k best tags of a text."""
    (pairs,) = sklearn_xc.topk_names(state["model"], [text], k=k, return_scores=True)
    return [Tag(name=name, score=score) for name, score in pairs]


@app.post("/tags")
def answer(question: Question) -> list[Tag]:
    """Return the best tags. A plain function: FastAPI runs it in a thread."""
    return tags(question.text, question.k)
