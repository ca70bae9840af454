/** A third oracle: the framer of Go's golang.org/x/net/http2, which reads frames and field sections, and knows no streams. */

import { AskedProcess } from './asked-process.ts';
import type { FuzzCase } from './connection-grammar.ts';
import { GO_PROGRAM } from './install.ts';
import { canonicalHead, newTranscript, type Transcript } from './transcript.ts';

interface Answer {
  readonly messages: Record<
    string,
    { heads: string[][]; data: string; trailers: string[] | null; ended: boolean }
  >;
  readonly refused: Record<string, string>;
  readonly refusal: string | null;
}

export class GoFramer {
  readonly #process = new AskedProcess(GO_PROGRAM, []);

  async transcribe({ frames }: FuzzCase): Promise<Transcript> {
    const hex = frames.map((frame) => frame.toString('hex'));
    const answer = (await this.#process.ask({ frames: hex })) as Answer;
    const transcript = newTranscript();
    for (const [id, message] of Object.entries(answer.messages)) {
      transcript.messages.set(Number(id), {
        ...message,
        heads: message.heads.map(canonicalHead),
        trailers: message.trailers === null ? undefined : JSON.stringify(message.trailers),
      });
    }
    for (const [id, reason] of Object.entries(answer.refused)) transcript.refused.set(Number(id), reason);
    transcript.refusal = answer.refusal ?? undefined;
    return transcript;
  }

  end(): void {
    this.#process.end();
  }
}
