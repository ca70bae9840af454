import { type BodyDecoder, bodyDecoder } from '../../http1/body-decoder.ts';
import type { BodyFraming, ResponseHead } from '../../http1/heads.ts';
import type { AnswerBody } from '../../streams/message.ts';
import { ANSWER_LIMITS } from '../answer-limits.ts';
import { reusableForMs } from '../keep-alive.ts';

/** The final answer whose head has been passed. */
export interface AnswerInProgress {
  readonly body: BodyDecoder;
  /** Whether another request may follow it. */
  persistent: boolean;
  readonly reusableForMs: number;
  /** Whether reading stopped amid it: the end of the connection may have come unread. */
  wasHeld: boolean;
}

/** The answer that begins with this head. */
export function beginAnswer(
  head: ResponseHead,
  framing: Exclude<BodyFraming, { kind: 'tunnel' }>,
): AnswerInProgress {
  return {
    body: bodyDecoder('response', framing, ANSWER_LIMITS),
    persistent: head.persistent,
    reusableForMs: reusableForMs(head.fields),
    wasHeld: false,
  };
}

/** What its user needs to know of the framing. */
export function answerBodyOf({ kind }: BodyFraming): AnswerBody {
  return kind === 'none' || kind === 'length' ? kind : 'open';
}
