"""Users on keep-alive connections: each sends a request, waits about a second,
and sends the next on the same connection. No timeouts. MS is the handler's time."""

import json
import os

from locust import HttpUser, between, events, task

answered = {}


class Visitor(HttpUser):
    wait_time = between(0.5, 1.5)

    @task
    def hello(self):
        with self.client.get("/hello?ms=" + os.environ["MS"], name="hello", catch_response=True) as response:
            if response.status_code == 200:
                answered[id(self)] = answered.get(id(self), 0) + 1


@events.quitting.add_listener
def report(environment, **_):
    total = environment.stats.total
    print(json.dumps({
        "requests": total.num_requests,
        "failures": total.num_failures,
        "users_answered": len(answered),
    }))
