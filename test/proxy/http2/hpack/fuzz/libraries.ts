/** The libraries that write and read field blocks beside the codec: Go's golang.org/x/net/http2/hpack, and PyPI's hpack. */

import { join } from 'node:path';
import { AskedProcess } from '../../fuzz/asked-process.ts';
import { GO_PROGRAM, PYTHON_PACKAGES } from '../../fuzz/install.ts';
import { namesAndValues, type Step } from './sequence-grammar.ts';

export type LibraryName = 'go' | 'python';

/** What a block says. */
export interface Section {
  readonly fields: readonly string[];
  /** Names of fields that came never indexed. */
  readonly never: readonly string[];
}

/** What is read by one decoder: a block, and a table size that was acknowledged before it. */
export interface ReadResult {
  readonly limit?: number | undefined;
  readonly block: Buffer;
}

class Library {
  readonly #process: AskedProcess;

  constructor(process: AskedProcess) {
    this.#process = process;
  }

  async encode(steps: readonly Step[]): Promise<Buffer[]> {
    const encode = steps.map(({ limit, sizes, fields, plain }) => ({
      limit,
      sizes,
      plain,
      fields: namesAndValues(fields),
      never: fields.map(([, , never]) => never),
    }));
    const blocks = (await this.#process.ask({ encode })) as string[];
    return blocks.map((block) => Buffer.from(block, 'hex'));
  }

  /** What each block says; in the place of the last, why it was refused. */
  async decode(readings: readonly ReadResult[]): Promise<(Section | string)[]> {
    const decode = readings.map(({ limit, block }) => ({ limit, block: block.toString('hex') }));
    return (await this.#process.ask({ decode })) as (Section | string)[];
  }

  end(): void {
    this.#process.end();
  }
}

export type Libraries = Readonly<Record<LibraryName, Library>>;

export function startLibraries(): Libraries {
  const python = join(import.meta.dirname, 'hpack_library.py');
  return {
    go: new Library(new AskedProcess(GO_PROGRAM, [])),
    python: new Library(new AskedProcess('python3', [python], { PYTHONPATH: PYTHON_PACKAGES })),
  };
}
