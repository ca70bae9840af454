import type { Step, Walk } from './walk.ts';

/** Shrinking ends by then, however far it has come. */
const MAX_MS = 20_000;

/** The numbers and names of a message's text, which say nothing of its kind. */
const PARTICULARS = /\d+(\.\d+)?|\([^)]*\)/g;

export interface Short {
  readonly walk: Walk;
  readonly error: Error;
}

/**
 * A shorter walk that fails the same way: steps are left out, from halves to single ones, then what is left is made
 * plainer.
 */
export async function shrunk(
  walk: Walk,
  error: Error,
  attempt: (walk: Walk) => Promise<Error | undefined>,
): Promise<Short> {
  let best: Short = { walk, error };
  const endsAt = performance.now() + MAX_MS;

  async function better(steps: readonly Step[]): Promise<boolean> {
    if (performance.now() > endsAt) return false;
    const candidate = { ...best.walk, steps };
    const failed = await attempt(candidate);
    if (failed === undefined || kindOf(failed) !== kindOf(error)) return false;
    best = { walk: candidate, error: failed };
    return true;
  }

  for (let size = Math.ceil(walk.steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.walk.steps.length; ) {
      const { steps } = best.walk;
      if (!(await better([...steps.slice(0, at), ...steps.slice(at + size)]))) at += size;
    }
  }
  for (let at = 0; at < best.walk.steps.length; at++) {
    for (const plainer of plainerThan(best.walk.steps[at] as Step)) {
      const { steps } = best.walk;
      await better([...steps.slice(0, at), plainer(steps[at] as Step), ...steps.slice(at + 1)]);
    }
  }
  return best;
}

function kindOf({ message }: Error): string {
  return message.replace(PARTICULARS, '#');
}

function plainerThan(step: Step): ((step: Step) => Step)[] {
  const plainer: ((step: Step) => Step)[] = [(now) => ({ ...now, pace: 'settled' })];
  if (step.do === 'app asks') {
    plainer.push(
      (now) => ({ ...now, app: 0 }) as Step,
      (now) => ({ ...now, stops: 'whole' }) as Step,
      (now) => ({ ...now, bytes: 0, body: 'none', method: 'GET' }) as Step,
      (now) => ({ ...now, version: '1.1', closes: false }) as Step,
    );
  }
  if (step.do === 'upstream answers') {
    plainer.push(
      (now) => ({ ...now, upstream: 0 }) as Step,
      (now) => ({ ...now, stops: 'whole' }) as Step,
      (now) => ({ ...now, bytes: 0 }) as Step,
      (now) => ({ ...now, framing: 'length' }) as Step,
      (now) => ({ ...now, closes: false, keepAlive: undefined }) as Step,
      (now) => ({ ...now, afterwards: 'stays' }) as Step,
      (now) => ({ ...now, status: 200 }) as Step,
    );
  }
  return plainer;
}
