/** A value with subscribers. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";

export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(next: T): void {
    if (Object.is(next, this.current)) return;
    this.current = next;
    for (const listener of [...this.listeners]) listener();
  }

  update(change: (value: T) => T): void {
    this.set(change(this.current));
  }

  /** Change some fields. */
  patch(change: Partial<T>): void {
    this.set({ ...this.current, ...change });
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** Return the selected part of a store, and render the component again when that part changes. */
export function useStore<T, S = T>(store: Store<T>, select: (value: T) => S = (value) => value as unknown as S): S {
  const selected = select(store.value);
  const shown = useRef({ select, selected });
  shown.current = { select, selected };
  const [, render] = useState(0);
  useLayoutEffect(() => {
    const look = () => {
      if (!Object.is(shown.current.select(store.value), shown.current.selected)) render((count) => count + 1);
    };
    look();
    return store.subscribe(look);
  }, [store]);
  return selected;
}
