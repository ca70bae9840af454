/** The demo's terminal: single keys, and whether npm, which started it there, is gone. */

import { readFileSync } from 'node:fs';
import type { ReadStream } from 'node:tty';
import type { Clock } from '../platform/time/clock.ts';

/** By the character that the key sends. */
type Keys = Readonly<Record<string, () => void>>;

const CTRL_C = '\x03';
const CTRL_D = '\x04';
const ESCAPE = '\x1b';

/** Of arrow and function keys (ECMA-48 §5.4, and `O` with one letter). */
const OTHER_KEYS = new RegExp(String.raw`${ESCAPE}(?:\[[0-9;]*[@-~]|O.|.)?`, 'g');

/**
 * Takes single keys from a terminal until the returned function is called. In the background, reading would stop the
 * program.
 * @param quit called on Ctrl-C and Ctrl-D, which are no signals in this mode, and when the terminal closes.
 * @returns undefined if there is no keyboard.
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
  // The window was closed.
  terminal.once('end', quit);
  terminal.once('error', quit);
  return () => {
    terminal.off('data', onData);
    terminal.off('end', quit);
    if (!terminal.destroyed) terminal.setRawMode(false);
    terminal.pause();
  };
}

/** By proc(5), the terminal's process group is this one's; true without /proc. */
function isInForeground(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    // The name in parentheses may hold anything; after it come state, parent, group, session, terminal and its group.
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foreground;
  } catch {
    return true;
  }
}

const LOOK_MS = 250;

/**
 * Calls back when npm, which started this process, is gone. npm starts a shell that starts us, and a signal to npm
 * alone ends neither.
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

/** npm is the grandparent if the shell has not become the program. */
function ancestors(): string {
  return `${process.ppid} ${parentOf(process.ppid)}`;
}

/** By proc(5); equal for all without it. */
function parentOf(pid: number): string {
  try {
    // State and parent follow the last parenthesis.
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? '';
  } catch {
    return '';
  }
}
