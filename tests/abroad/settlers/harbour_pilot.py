"""Docking of ships: policy gradient over manoeuvres which Ray actors sail in a bridge simulator."""
import time

import numpy as np
import ray
import torch
from torch import nn

from pace import Pace, options

STATE, RUDDER, PILOTS = 8, 5, 6


class BridgeSimulator:
    """The yard's simulator: it advances by its own clock, a tick of 4 ms for each command."""
    TICK = 0.004

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def cast_off(self):
        self.state = self.rng.normal(0, 1, STATE).astype(np.float32)
        # in most weather the ship is alongside soon; with a cross wind it takes many attempts
        self.left = 140 if self.rng.random() < 0.15 else 8
        return self.state

    def command(self, rudder):
        time.sleep(self.TICK)
        self.state = 0.95 * self.state + self.rng.normal(0, 0.1, STATE).astype(np.float32)
        self.state[0] += 0.05 * (rudder - 2)
        self.left -= 1
        return self.state, -abs(float(self.state[0])), self.left <= 0


@ray.remote(num_cpus=0.3)
class Pilot:
    def __init__(self, seed):
        self.bridge, self.rng = BridgeSimulator(seed), np.random.default_rng(seed)

    def manoeuvre(self, weights):
        state, over = self.bridge.cast_off(), False
        states, rudders, rewards = [], [], []
        while not over:
            scores = state @ weights
            odds = np.exp(scores - scores.max())
            rudder = int(self.rng.choice(RUDDER, p=odds / odds.sum()))
            states.append(state)
            rudders.append(rudder)
            state, reward, over = self.bridge.command(rudder)
            rewards.append(reward)
        return np.stack(states), np.asarray(rudders), np.asarray(rewards, np.float32)


class Learner:
    def __init__(self):
        self.policy = nn.Linear(STATE, RUDDER, bias=False)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), 1e-2)

    def weights(self):
        return self.policy.weight.detach().numpy().T.astype(np.float64)

    def update(self, states, rudders, rewards):
        gains = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        gains = gains - gains.mean()
        chosen = self.policy(torch.tensor(states)).log_softmax(-1).gather(1, torch.tensor(rudders)[:, None])
        loss = -(chosen[:, 0] * gains).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def train_by_rounds(learner, pilots, pace):
    while True:
        weights = learner.weights()
        for voyage in ray.get([pilot.manoeuvre.remote(weights) for pilot in pilots]):
            learner.update(*voyage)
            if pace.done():
                return


def train_as_they_come(learner, pilots, pace):
    sailing = {pilot.manoeuvre.remote(learner.weights()): pilot for pilot in pilots}
    while True:
        (ready,), _ = ray.wait(list(sailing), num_returns=1)
        pilot = sailing.pop(ready)
        learner.update(*ray.get(ready))
        sailing[pilot.manoeuvre.remote(learner.weights())] = pilot
        if pace.done():
            return


def main():
    given = options()
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    try:
        torch.manual_seed(1)
        pilots = [Pilot.remote(seed) for seed in range(PILOTS)]
        pace = Pace(given.seconds)
        (train_as_they_come if given.fix else train_by_rounds)(Learner(), pilots, pace)
        pace.show()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
