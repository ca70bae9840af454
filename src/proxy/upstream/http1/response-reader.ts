import { type ProxyErrorCode, SidecarError } from '../../../platform/errors.ts';
import { challengesConnection, InterimResponses } from '../../http/messages.ts';
import { bodyDecoder } from '../../http1/body-decoder.ts';
import { type HeadReader, responseHeadReader } from '../../http1/head-reader.ts';
import { type BodyFraming, frameResponse, type Http1ResponseHead } from '../../http1/heads.ts';
import { ParseError } from '../../http1/parse-error.ts';
import type { ByteQueue } from '../../io/byte-queue.ts';
import { asProxyError } from '../../proxy-error.ts';
import type { ResponseBody, UpstreamUser } from '../../streams/contract.ts';
import { ANSWER_LIMITS, reusableForMs, SECTION_BYTES } from '../connection-budget.ts';
import type { Busy, ResponseInProgress, UpstreamState } from './state.ts';

/** Reading more of an unwanted answer costs more than a new connection. */
const WORTH_READING_BYTES = 64 * 1024;

/** A full TLS record (RFC 8446 §5.1) is likely to be followed by more. */
const RECORD_BYTES = 16_384;

const MAX_GATHERED_BYTES = 64 * 1024;

/** Passes answers to their requests' users. Subclasses judge ends and failures of the connection. */
export abstract class ResponseReader {
  readonly #heads: HeadReader<Http1ResponseHead> = responseHeadReader(ANSWER_LIMITS);
  protected abstract state: UpstreamState;

  abstract touch(): void;
  abstract abandon(): void;
  /** If so, what comes is no answer. */
  protected abstract get brokenUnsent(): boolean;
  /** Ties the connection to the user's owner. */
  protected abstract tieTo(user: UpstreamUser): void;
  protected abstract endResponse(answer: ResponseInProgress): void;
  /** @param byPeer false if a bound or rule of the sidecar ended it. */
  protected abstract fail(error: SidecarError<ProxyErrorCode>, byPeer: boolean): void;
  protected abstract failUnasked(): void;

  protected onBytes(chunk: Buffer): void {
    const state = this.state;
    switch (state.kind) {
      case 'busy':
      case 'discarding':
        if (this.brokenUnsent) {
          this.failUnasked();
          break;
        }
        if (state.kind === 'busy') state.anyResponse = true;
        try {
          this.#read(chunk);
        } catch (error) {
          this.fail(asProxyError(error), false);
        }
        break;
      case 'held':
        state.bytes.add(chunk);
        break;
      case 'given-up':
        break;
      default:
        // Unsolicited bytes are no answer to a later request.
        this.failUnasked();
    }
  }

  /**
   * Also ends an answer that was whole. In one piece, so that later bytes do not pass for the next answer.
   */
  protected readHeld(bytes: ByteQueue): void {
    const pieces = bytes.pieces();
    this.onBytes(pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces));
    bytes.clear();
  }

  #read(chunk: Buffer): void {
    let at = 0;
    for (;;) {
      const state = this.state;
      if (state.kind === 'held') {
        state.bytes.add(chunk.subarray(at));
        return;
      }
      if (state.kind !== 'busy' && state.kind !== 'discarding') return;
      const { answer } = state;
      if (answer?.body.complete) {
        // The surplus may not belong to the next answer.
        if (at < chunk.length) answer.persistent = false;
        this.endResponse(answer);
        return;
      }
      if (at === chunk.length) {
        if (state.kind === 'discarding') return;
        this.touch();
        this.#passOn(state, chunk.length);
        return;
      }
      if (answer !== undefined) {
        const data = answer.body.read(chunk, at);
        at = answer.body.position;
        if (data !== undefined) this.#pass(data);
      } else if (state.kind === 'busy') {
        at = this.#readHead(state, chunk, at);
      }
    }
  }

  /** TLS delivers records one by one; those that came together leave in one write. */
  #passOn(busy: Busy, cameBytes: number): void {
    const isFirst = busy.gatheredBytes === 0;
    busy.gatheredBytes += cameBytes;
    if (cameBytes !== RECORD_BYTES || busy.gatheredBytes >= MAX_GATHERED_BYTES) this.#flush(busy);
    else if (isFirst) setImmediate(() => this.#flushLater(busy));
  }

  #flushLater(busy: Busy): void {
    try {
      this.#flush(busy);
    } catch (error) {
      this.fail(asProxyError(error), false);
    }
  }

  #flush(busy: Busy): void {
    if (this.state !== busy || busy.gatheredBytes === 0) return;
    busy.gatheredBytes = 0;
    busy.user.onReadEnd();
  }

  #readHead(busy: Busy, chunk: Buffer, at: number): number {
    const head = this.#heads.read(chunk, at);
    if (head === undefined) return chunk.length;
    const next = this.#heads.position;
    const framing = frameResponse(head, busy.method);
    if (head.status === 101) {
      const bytes = next < chunk.length ? Buffer.from(chunk.subarray(next)) : undefined;
      this.state = { kind: 'switching', user: busy.user, bytes };
      busy.user.onSwitched(head);
      return chunk.length;
    }
    if (head.status < 200) {
      busy.interims ??= new InterimResponses();
      if (busy.interims.isFlood(head.fields, SECTION_BYTES))
        throw new ParseError('response', 'interim_flood');
      busy.user.onInterim(head);
      return next;
    }
    if (framing.kind === 'tunnel') throw new SidecarError('internal', 'a CONNECT was sent as a request');
    busy.answer = beginResponse(head, framing);
    if ((head.status === 401 || head.status === 407) && challengesConnection(head.fields)) {
      this.tieTo(busy.user);
    }
    busy.user.onResponse(head, responseBodyOf(framing));
    return next;
  }

  #pass(data: Buffer): void {
    const state = this.state;
    if (state.kind === 'busy') {
      state.user.onData(data);
    } else if (state.kind === 'discarding') {
      state.bytes += data.length;
      if (state.bytes > WORTH_READING_BYTES) this.abandon();
    }
  }
}

function beginResponse(
  head: Http1ResponseHead,
  framing: Exclude<BodyFraming, { kind: 'tunnel' }>,
): ResponseInProgress {
  return {
    body: bodyDecoder('response', framing, ANSWER_LIMITS),
    persistent: head.persistent,
    reusableForMs: reusableForMs(head.fields),
    wasHeld: false,
  };
}

function responseBodyOf({ kind }: BodyFraming): ResponseBody {
  return kind === 'none' || kind === 'length' ? kind : 'open';
}
