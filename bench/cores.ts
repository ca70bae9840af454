import { readFileSync } from 'node:fs';

/** Who runs where: what is measured has a core to itself, everything else shares the others. */
export interface Cores {
  /** taskset's notation: `1`, or `0,2`. */
  readonly proxy: string;
  readonly load: string;
  readonly loadCount: number;
}

/** @throws {Error} with fewer than two cores. */
export function shareOutCores(): Cores {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  const cores = list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
  const proxy = cores.pop();
  if (proxy === undefined || cores.length === 0) {
    throw new Error('the benchmark needs two cores: one for what is measured, one for the load');
  }
  return { proxy: String(proxy), load: cores.join(','), loadCount: cores.length };
}
