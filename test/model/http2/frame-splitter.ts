import { readBlock } from '../../wire/http2/field-block.ts';
import { type Frame, PREFACE } from '../../wire/http2/frames.ts';
import type { Message } from '../message.ts';
import { Violation } from '../violation.ts';

const HEADER_BYTES = 9;

/** What comes on a connection of HTTP/2, frame by frame. */
export class FrameSplitter {
  readonly #onFrame: (frame: Frame) => void;
  #prefaceBytes: number;
  #rest: Buffer = Buffer.alloc(0);

  /** @param prefaced whether the preface of a client comes first. */
  constructor(prefaced: boolean, onFrame: (frame: Frame) => void) {
    this.#prefaceBytes = prefaced ? PREFACE.length : 0;
    this.#onFrame = onFrame;
  }

  push(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    if (this.#prefaceBytes > 0) {
      if (this.#rest.length < this.#prefaceBytes) return;
      if (!this.#take(this.#prefaceBytes).equals(PREFACE)) throw new Violation('a preface is wrong');
      this.#prefaceBytes = 0;
    }
    while (this.#rest.length >= HEADER_BYTES) {
      const length = this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < HEADER_BYTES + length) return;
      const header = this.#take(HEADER_BYTES);
      const [type, flags] = [header[3] as number, header[4] as number];
      this.#onFrame({ type, flags, streamId: header.readUInt32BE(5), payload: this.#take(length) });
    }
  }

  #take(length: number): Buffer {
    const taken = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return taken;
  }
}

/** The fields of a block, pseudo-fields among them. */
export function fieldsOf(block: Buffer): Map<string, string> {
  const fields = new Map<string, string>();
  const all = readBlock(block);
  for (let at = 0; at < all.length; at += 2) {
    const [name, value] = [all[at] as string, all[at + 1] as string];
    const known = fields.get(name);
    fields.set(name, known === undefined ? value : `${known}, ${value}`);
  }
  return fields;
}

export function requestOf(fields: ReadonlyMap<string, string>): Message {
  const startLine = `${fields.get(':method')} ${fields.get(':path')} HTTP/2`;
  return { startLine, fields, body: [], bodyBytes: 0 };
}
