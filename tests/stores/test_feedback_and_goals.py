"""Feedback and goals in every store."""

from msgspec.structs import replace

from agui_container.ports.records import Feedback, GoalStatus, Review, StoredGoal, ThreadKey, Triage
from agui_container.ports.store import PAGE, Store
from tests.stores.doubles import RUN, THREAD, claim_run, message, run, store_turn

SAID = Feedback("m1", "negative", ("incorrect", "slow"), "Wrong \0 year", 10.0, 10.0)
RESOLVED = Triage("model", "a note", "operator", 50.0)


async def test_feedback_that_is_given_again_replaces_the_first(store: Store) -> None:
    await store_turn(store, message("m1"), message("m2"))
    assert await store.feedbacks.put(THREAD, SAID) == SAID
    better = replace(SAID, sentiment="positive", categories=(), notes=None, created_at=20.0, changed_at=20.0)
    given = await store.feedbacks.put(THREAD, better)
    assert given == replace(better, created_at=10.0)
    other = replace(SAID, message_id="m2")
    await store.feedbacks.put(THREAD, other)
    assert list(await store.feedbacks.list_for(THREAD)) == [given, other]


async def test_feedback_on_what_nobody_said_is_none(store: Store) -> None:
    await store_turn(store, message("m1"))
    assert await store.feedbacks.put(THREAD, replace(SAID, message_id="unknown")) is None
    assert await store.feedbacks.put(ThreadKey("owner", "unknown"), SAID) is None
    assert list(await store.feedbacks.list_for(ThreadKey("owner", "unknown"))) == []


async def test_operators_triage_what_users_do_not_see(store: Store) -> None:
    await store_turn(store, message("m1"))
    await store.feedbacks.put(THREAD, SAID)
    review = await store.feedbacks.triage(THREAD, "m1", RESOLVED)
    assert review == Review(THREAD, SAID, RESOLVED)
    assert list(await store.feedbacks.list_for(THREAD)) == [SAID]
    changed = replace(SAID, notes="Still wrong", changed_at=60.0)
    assert await store.feedbacks.put(THREAD, changed) == changed
    assert list((await store.feedbacks.reviews()).items) == [Review(THREAD, changed, RESOLVED)]
    assert await store.feedbacks.triage(THREAD, "m1", Triage()) == Review(THREAD, changed, Triage())
    assert await store.feedbacks.triage(THREAD, "m2", Triage()) is None
    assert await store.feedbacks.triage(ThreadKey("another", "t1"), "m1", Triage()) is None


async def test_operators_see_what_everybody_said_page_by_page(store: Store) -> None:
    names = [f"m{n}" for n in range(PAGE // 2 + 1)]
    said = [(ThreadKey(owner, "t1"), name) for name in names for owner in ("one", "another")]
    for owner in ("one", "another"):
        await store_turn(store, *map(message, names), key=run(owner=owner))
    for thread, name in said:
        await store.feedbacks.put(thread, replace(SAID, message_id=name))
    first = await store.feedbacks.reviews()
    rest = await store.feedbacks.reviews(page=first.next)
    reviews = (*first.items, *rest.items)
    assert [(review.thread, review.feedback.message_id) for review in reviews] == said[::-1]
    assert (len(first.items), rest.next) == (PAGE, None)
    await store.feedbacks.triage(*said[3], RESOLVED)
    assert [review.thread for review in (await store.feedbacks.reviews(resolved=True)).items] == [said[3][0]]
    first = await store.feedbacks.reviews(resolved=False)
    rest = await store.feedbacks.reviews(resolved=False, page=first.next)
    assert len(first.items) + len(rest.items) == len(said) - 1


def goal(index: int, run_id: str = "r1") -> StoredGoal:
    return StoredGoal(run_id, index, "summary", b'{"type": "object"}', 100.0)


async def test_goals_are_declared_once_and_concluded_once(store: Store) -> None:
    await claim_run(store)
    await store.goals.declare(RUN, [goal(1), goal(0)])
    await store.goals.conclude(RUN, 0, GoalStatus.ACHIEVED, 110.0, result=b'{"a": 1}')
    await store.goals.conclude(RUN, 0, GoalStatus.FAILED, 120.0)
    await store.goals.conclude(RUN, 2, GoalStatus.FAILED, 120.0)
    await store.goals.conclude(run("unknown"), 0, GoalStatus.FAILED, 120.0)
    await store.goals.declare(RUN, [goal(0), goal(1)])
    await store.goals.declare(RUN, [])
    await store.goals.declare(run("unknown"), [goal(0)])
    achieved = replace(goal(0), status=GoalStatus.ACHIEVED, result=b'{"a": 1}', concluded_at=110.0)
    delta = await store.threads.changes(THREAD)
    assert delta is not None
    assert list(delta.goals or ()) == [achieved, goal(1)]


async def test_a_delta_has_all_goals_when_one_has_changed(store: Store) -> None:
    await claim_run(store)
    before = await store.threads.changes(THREAD)
    assert before is not None
    assert list(before.goals or ()) == []
    await store.goals.declare(RUN, [goal(0), goal(1)])
    declared = await store.threads.changes(THREAD, before.next)
    assert declared is not None
    assert list(declared.goals or ()) == [goal(0), goal(1)]
    same = await store.threads.changes(THREAD, declared.next)
    assert same is not None
    assert same.goals is None
    await store.goals.conclude(RUN, 1, GoalStatus.FAILED, 110.0)
    failed = await store.threads.changes(THREAD, same.next)
    assert failed is not None
    assert list(failed.goals or ()) == [goal(0), replace(goal(1), status=GoalStatus.FAILED, concluded_at=110.0)]
