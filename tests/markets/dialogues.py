"""Records of public corpora as they lie in their files, made up."""

from typing import Any

AGREED = "item0=0 item1=4 item2=0 <eos> reward=8 agree"
AGREED_OTHER = "item0=1 item1=0 item2=1 <eos> reward=6 agree"


def bargain(*, price: float = 90, targets: tuple[int, int] = (80, 100), key: str = "C_1") -> dict[str, Any]:
    """A deal of CraigslistBargain; the list price is 200."""

    def knows(role: str, target: int) -> dict[str, Any]:
        item = {"Category": "bike", "Price": 200, "Title": "A bike", "Description": ["Two wheels."], "Images": []}
        return {"personal": {"Bottomline": None, "Role": role, "Target": target}, "item": item}

    buyer, seller = targets
    return {
        "uuid": key,
        "scenario": {"category": "bike", "kbs": [knows("buyer", buyer), knows("seller", seller)]},
        "agents": {"0": "human", "1": "human"},
        "outcome": {"reward": 1, "offer": {"price": price, "sides": ""}},
        "events": [
            {"action": "message", "start_time": "99.5", "data": "Is it still there?", "agent": 0, "time": "100"},
            {"action": "offer", "start_time": None, "data": {"price": price}, "agent": 1, "time": "102"},
            {"action": "accept", "start_time": None, "data": None, "agent": 0, "time": "104"},
        ],
    }


def camping(key: int = 7) -> dict[str, Any]:
    """A deal of CaSiNo, 21 points to 17."""

    def camper(high: str, medium: str, low: str, points: int) -> dict[str, Any]:
        return {
            "value2issue": {"High": high, "Medium": medium, "Low": low},
            "value2reason": {"High": "I am often cold.", "Medium": "", "Low": ""},
            "outcomes": {"points_scored": points, "satisfaction": "zorblax", "opponent_likeness": "zorblax"},
            "demographics": {"age": 30, "gender": "zorblax"},
            "personality": {"svo": "zorblax"},
        }

    share = {"Firewood": "2", "Food": "1", "Water": "1"}
    rest = {"Firewood": "1", "Food": "2", "Water": "2"}
    return {
        "dialogue_id": key,
        "chat_logs": [
            {"text": "Hello there 🔥", "task_data": {}, "id": "mturk_agent_1"},
            {"text": "Hello back", "task_data": {}, "id": "mturk_agent_2"},
            {
                "text": "Submit-Deal",
                "task_data": {"issue2youget": share, "issue2theyget": rest},
                "id": "mturk_agent_2",
            },
            {"text": "Accept-Deal", "task_data": {"data": "accept_deal"}, "id": "mturk_agent_1"},
        ],
        "participant_info": {
            "mturk_agent_1": camper("Food", "Water", "Firewood", 21),
            "mturk_agent_2": camper("Firewood", "Food", "Water", 17),
        },
        "annotations": [["Hello there", "small-talk"]],
    }


def division(view: int, ending: str) -> str:
    """A line of Deal or No Deal: 0 of who spoke first, 1 of the other."""
    tasks = ("1 0 4 2 1 2", "1 4 4 1 1 2")
    you, them = ("YOU", "THEM") if view == 0 else ("THEM", "YOU")
    said = f"{you}: i want the hats <eos> {them}: deal <eos> {you}: <selection>"
    return f"{tasks[view]} {said} {ending} {tasks[1 - view]}"


def arena() -> dict[str, Any]:
    """A game of NegotiationArena that the seller loses 5 by."""

    def typed(kind: str, value: Any) -> dict[str, Any]:
        return {"_type": kind, "_value": value}

    trade = typed("trade", {"RED": typed("resource", {"X": 1}), "BLUE": typed("resource", {"ZUP": 35})})
    values = [typed("valuation", {"X": 40}), typed("valuation", {"X": 60})]
    goals = [typed("goal", typed("seller_goal", values[0])), typed("goal", typed("buyer_goal", values[1]))]

    def turn(number: int, player: int, answer: str, proposed: Any) -> dict[str, Any]:
        return {
            "current_iteration": number,
            "turn": player,
            "player_public_info_dict": {
                "message": f"message {number}",
                "player answer": answer,
                "newly proposed trade": proposed,
            },
            "player_private_info_dict": {"my goals": "secret goals", "reason": "secret reason"},
        }

    return {
        "class": "BuySellGame",
        "run_epoch_time_ms": "1707348339631",
        "players": [
            {"class": "ChatGPTAgent", "model": "some-model", "agent_name": "Player RED"},
            {"class": "ChatGPTAgent", "model": "some-model", "agent_name": "Player BLUE"},
        ],
        "game_state": [
            {"current_iteration": "START", "settings": {"player_goals": goals, "player_valuation": values}},
            turn(1, 0, "PROPOSAL", trade),
            turn(2, 1, "ACCEPT", "NONE"),
            {
                "current_iteration": "END",
                "summary": {"proposed_trade": trade, "final_response": "ACCEPT", "player_outcome": [-5, 25]},
            },
        ],
    }
