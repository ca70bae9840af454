/** What processes have used, read from /proc (proc(5)). */

import { readFileSync } from 'node:fs';

/** USER_HZ: the unit of times in /proc/PID/stat, 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

export interface Memory {
  /** Everything mapped and present, shared program text included. */
  readonly residentBytes: number;
  /** The process's own: heaps and stacks. */
  readonly anonymousBytes: number;
}

/** The process and all that descend from it. A process that has just gone counts as having no children. */
export function processTree(pid: number): readonly number[] {
  const children = readOrEmpty(`/proc/${pid}/task/${pid}/children`).trim();
  return [
    pid,
    ...(children === '' ? [] : children.split(' ').flatMap((child) => processTree(Number(child)))),
  ];
}

/** User and system time of the whole tree since it began, all threads, also those that have ended, in seconds. */
export function cpuSeconds(pid: number): number {
  return sum(processTree(pid).map(ownCpuSeconds));
}

/** Memory of the whole tree. Pages that a parent and its child share copy-on-write count for both. */
export function memoryOf(pid: number): Memory {
  const statuses = processTree(pid).map((each) => readOrEmpty(`/proc/${each}/status`));
  const total = (field: string): number =>
    sum(
      statuses.map(
        (status) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) * 1024,
      ),
    );
  return { residentBytes: total('VmRSS'), anonymousBytes: total('RssAnon') };
}

function ownCpuSeconds(pid: number): number {
  // The name, in parentheses, may hold spaces; utime and stime are the 14th and 15th fields of the line.
  const stat = readOrEmpty(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / TICKS_PER_SECOND;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
