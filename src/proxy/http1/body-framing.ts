/**
 * Where a message's body ends (RFC 9112 §6.3).
 */

import { announcesBody, type ControlFields } from './control-fields.ts';
import { MessageRefused } from './message-refused.ts';
import type { ResponseHead } from './response-head.ts';

export type BodyFraming =
  /** The message ends with its head. */
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  /** The body ends with the connection; answers only. */
  | { readonly kind: 'close' }
  /** What follows is another protocol: after 101, and after a 2xx answer to CONNECT. */
  | { readonly kind: 'tunnel' };

const NONE: BodyFraming = { kind: 'none' };
const CHUNKED: BodyFraming = { kind: 'chunked' };
const CLOSE: BodyFraming = { kind: 'close' };
const TUNNEL: BodyFraming = { kind: 'tunnel' };

/** A request without Content-Length and Transfer-Encoding has no body (§6.3, rule 7). */
export function frameRequest(control: ControlFields): BodyFraming {
  return announced(control) ?? NONE;
}

/**
 * The framing of an answer, which depends on what was asked (§6.3, rules 1 to 8).
 *
 * A 205 is framed like any other answer, as the RFC has it, but whoever relays one must not relay its body.
 *
 * @throws {MessageRefused} `interim_closes` for a 1xx other than 101 after which, by its own word or version, nothing
 *   may follow: the final answer would be read on a connection that has been given up.
 * A 204 has no body, whatever it announces: every reader believes the status. No answer may follow it on its connection.
 *
 * @throws {MessageRefused} `body_not_allowed` for a 1xx, 205 or 2xx to CONNECT that announces a body: readers disagree
 *   on whether to believe the status or the field. `Content-Length: 0`, which is common, is let through.
 */
export function frameResponse(head: ResponseHead, requestMethod: string): BodyFraming {
  const { status } = head;
  const tunnels = status === 101 || (requestMethod === 'CONNECT' && status >= 200 && status < 300);
  if (status < 200 || tunnels) {
    if (announcesBody(head)) throw new MessageRefused('response', 'body_not_allowed');
    if (status < 200 && !tunnels && !head.persistent) throw new MessageRefused('response', 'interim_closes');
    return tunnels ? TUNNEL : NONE;
  }
  if (requestMethod === 'HEAD' || status === 204 || status === 304) return NONE;
  if (status === 205 && (head.contentLength ?? 0) > 0)
    throw new MessageRefused('response', 'body_not_allowed');
  return announced(head) ?? CLOSE;
}

function announced(control: ControlFields): BodyFraming | undefined {
  if (control.chunked) return CHUNKED;
  return control.contentLength === undefined ? undefined : { kind: 'length', bytes: control.contentLength };
}
