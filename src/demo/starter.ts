import { readFileSync } from 'node:fs';
import type { Clock } from '../platform/time/clock.ts';

const LOOK_MS = 250;

/**
 * Calls back when npm, which started this process, is gone. No signal tells us: npm starts a shell that starts us, and
 * a signal to npm alone ends neither. Started in another way, a process outlives its starter, as usual.
 * @returns a function that ends the watch.
 */
export function whenStarterGone(
  env: Readonly<Record<string, string | undefined>>,
  clock: Clock,
  gone: () => void,
): () => void {
  if (env['npm_lifecycle_event'] === undefined) return () => undefined;
  const started = ancestors();
  let cancel: () => void;
  function look(): void {
    if (ancestors() === started) cancel = clock.after(LOOK_MS, look);
    else gone();
  }
  cancel = clock.after(LOOK_MS, look);
  return () => cancel();
}

/** Parent and grandparent: npm is the latter if the shell has not become the program. */
function ancestors(): string {
  return `${process.ppid} ${parentOf(process.ppid)}`;
}

/** By proc(5); the same for all if there is none. */
function parentOf(pid: number): string {
  try {
    // The name in parentheses may hold anything: state and parent follow the last parenthesis.
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? '';
  } catch {
    return '';
  }
}
