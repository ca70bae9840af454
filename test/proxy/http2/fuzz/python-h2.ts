/** The other oracle: PyPI's h2 in a Python process. */

import { join } from 'node:path';
import { AskedProcess } from './asked-process.ts';
import type { FuzzCase } from './connection-grammar.ts';
import { PYTHON_PACKAGES } from './install.ts';
import { canonicalHead, newTranscript, noteResets, type Transcript } from './transcript.ts';

interface Answer {
  readonly messages: Record<
    string,
    { heads: string[][]; data: string; trailers: string[] | null; ended: boolean }
  >;
  readonly refusal: string | null;
  readonly said: string;
}

export class PythonH2 {
  readonly #process = new AskedProcess('python3', [join(import.meta.dirname, 'h2_oracle.py')], {
    PYTHONPATH: PYTHON_PACKAGES,
  });

  async transcribe({ sender, asked, frames }: FuzzCase): Promise<Transcript> {
    const hex = frames.map((frame) => frame.toString('hex'));
    const answer = (await this.#process.ask({ sender, methods: asked, frames: hex })) as Answer;
    const transcript = newTranscript();
    for (const [id, message] of Object.entries(answer.messages)) {
      transcript.messages.set(Number(id), {
        ...message,
        heads: message.heads.map(canonicalHead),
        trailers: message.trailers === null ? undefined : JSON.stringify(message.trailers),
      });
    }
    transcript.refusal = answer.refusal ?? undefined;
    noteResets(transcript, Buffer.from(answer.said, 'hex'));
    return transcript;
  }

  end(): void {
    this.#process.end();
  }
}
