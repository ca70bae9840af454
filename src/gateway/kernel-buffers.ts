import { closeSync, openSync, readSync } from 'node:fs';
import { systemCodeOf } from '../platform/errors.ts';
import {
  type ConnectionEnds,
  readSocketTablesAtOnce,
  SocketSearch,
  socketNames,
} from '../platform/net/socket-tables.ts';

/** Of cgroup v2, as a container sees its own. cgroup v1 charges nobody for sockets. */
const STATISTICS = '/sys/fs/cgroup/memory.stat';

/** They have some 70 lines. */
const MAX_STATISTICS_BYTES = 16 * 1024;

export interface KernelBuffers {
  /** Bytes; 0 if they do not count against the memory limit. */
  charged(): number;
  /**
   * By owner: less than is charged. Takes up to tens of milliseconds. Undefined if the kernel cannot be asked, for
   * example for want of a descriptor.
   */
  queued<Owner>(
    sockets: ReadonlyMap<Owner, readonly ConnectionEnds[]>,
  ): ReadonlyMap<Owner, number> | undefined;
  close(): void;
}

/** There may be no descriptor when they matter. */
export function openKernelBuffers(statistics = STATISTICS): KernelBuffers {
  const file = openIfThere(statistics);
  const text = Buffer.alloc(MAX_STATISTICS_BYTES);
  return {
    charged() {
      const length = file === undefined ? 0 : lengthOf(file, text);
      return Number(/^sock (\d+)$/m.exec(text.toString('latin1', 0, length))?.[1] ?? 0);
    },
    queued: queuedInKernel,
    close() {
      if (file !== undefined) closeSync(file);
    },
  };
}

/** A control group may be removed. */
function lengthOf(file: number, text: Buffer): number {
  try {
    return readSync(file, text, 0, text.length, 0);
  } catch (error) {
    if (systemCodeOf(error) === undefined) throw error;
    return 0;
  }
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (systemCodeOf(error) === undefined) throw error;
    return undefined;
  }
}

function queuedInKernel<Owner>(
  sockets: ReadonlyMap<Owner, readonly ConnectionEnds[]>,
): ReadonlyMap<Owner, number> | undefined {
  const names = new Map(
    Array.from(sockets, ([owner, own]) => [owner, own.map((socket) => socketNames(socket, 'ours'))]),
  );
  const search = new SocketSearch([...names.values()].flat(2));
  if (readSocketTablesAtOnce((piece) => search.read(piece)) === 'broken') return undefined;
  return new Map(
    Array.from(names, ([owner, own]) => [
      owner,
      own.reduce((bytes, those) => bytes + (search.socket(those)?.queuedBytes ?? 0), 0),
    ]),
  );
}
