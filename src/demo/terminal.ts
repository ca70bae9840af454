import { readFileSync } from 'node:fs';
import type { ReadStream } from 'node:tty';
import type { Clock } from '../platform/time/clock.ts';

type Keys = Readonly<Record<string, () => void>>;

const CTRL_C = '\x03';
const CTRL_D = '\x04';
const ESCAPE = '\x1b';

/** Sequences of arrow and function keys (ECMA-48 §5.4, and `O` with one letter). */
const OTHER_KEYS = new RegExp(String.raw`${ESCAPE}(?:\[[0-9;]*[@-~]|O.|.)?`, 'g');

/**
 * Takes single keys, but none in the background, where reading would stop the program.
 * @param quit called on Ctrl-C, Ctrl-D, and when the terminal closes.
 * @returns a function that ends it; undefined if there is no keyboard.
 */
export function takeKeys(stdin: unknown, keys: Keys, quit: () => void): (() => void) | undefined {
  const terminal = stdin as ReadStream;
  if (!terminal.isTTY || !isInForeground()) return undefined;
  function onData(data: Buffer): void {
    for (const key of data.toString('latin1').replace(OTHER_KEYS, '').toLowerCase()) {
      if (key === CTRL_C || key === CTRL_D) quit();
      else if (Object.hasOwn(keys, key)) keys[key]?.();
    }
  }
  terminal.setRawMode(true);
  terminal.on('data', onData);
  terminal.once('end', quit);
  terminal.once('error', quit);
  return () => {
    terminal.off('data', onData);
    terminal.off('end', quit);
    if (!terminal.destroyed) terminal.setRawMode(false);
    terminal.pause();
  };
}

/** By proc(5); true without it. */
function isInForeground(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    // The name in parentheses may hold anything. Then come state, parent, group, session, terminal and its group.
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foreground;
  } catch {
    return true;
  }
}

const LOOK_MS = 250;

/**
 * Calls back when npm is gone: it starts a shell that starts us, and a signal to npm alone ends neither.
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

/** The grandparent is npm if the shell has not become the program. */
function ancestors(): string {
  return `${process.ppid} ${parentOf(process.ppid)}`;
}

/** By proc(5); constant without it. */
function parentOf(pid: number): string {
  try {
    // State and parent follow the last parenthesis.
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? '';
  } catch {
    return '';
  }
}
