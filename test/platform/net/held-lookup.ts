import type { LookupFunction } from 'node:net';

type Answer = (error: NodeJS.ErrnoException | null) => void;

/** A `lookup` that answers when it is told to, in the order in which it was asked, or by name. */
export function heldLookup() {
  const asked: string[] = [];
  const answers: { readonly name: string; readonly answer: Answer }[] = [];
  const lookup: LookupFunction = (name, _, told) => {
    asked.push(name);
    const answer: Answer = (error) =>
      told(error, error === null ? [{ address: '127.0.0.1', family: 4 }] : []);
    answers.push({ name, answer });
  };
  const answer = (error: NodeJS.ErrnoException | null = null, name = answers[0]?.name): void => {
    const at = answers.findIndex((one) => one.name === name);
    if (at !== -1) answers.splice(at, 1)[0]?.answer(error);
  };
  return { lookup, asked, answer };
}
