import type { Fields } from '../http/fields.ts';
import type { Protocol } from '../http/messages.ts';
import type { TargetForm } from '../http/syntax.ts';

/** A field section with the names of fields meant for the next hop alone. */
export interface FieldSection {
  readonly fields: Fields;
  /** Options of the Connection fields, in lower case (RFC 9110 §7.6.1); HTTP/2 has none. */
  readonly connectionOptions: readonly string[];
  /** Names of fields that no HPACK table on the way may hold (RFC 7541 §7.1.3); HTTP/2 only. */
  readonly neverIndexed?: readonly string[];
}

/** The head of an app's request, in any version of HTTP. */
export interface IncomingRequest extends FieldSection {
  readonly protocol: Protocol;
  readonly method: string;
  readonly target: string;
  readonly targetForm: TargetForm;
  /** The authority that the request is for, as it came: Host or `:authority`. */
  readonly host: string | undefined;
  /** The declared length of the body in octets, if any. */
  readonly contentLength: number | undefined;
}

/** The head of an upstream's answer. */
export interface AnswerHead extends FieldSection {
  readonly status: number;
  /** May be empty; HTTP/2 has none. */
  readonly reason: string;
}

/** The body that follows an answer's head: none, one of the length in Content-Length, or one of unknown length. */
export type AnswerBody = 'none' | 'length' | 'open';

/** An answer of the proxy's own. */
export interface OwnAnswer {
  readonly status: number;
  readonly reason: string;
  /** Content-type, content-length and the rest. */
  readonly fields: Fields;
  /** ASCII; left out in answer to HEAD. */
  readonly body: string;
  /** The connection cannot, or must not, carry another request. */
  readonly closes: boolean;
}
