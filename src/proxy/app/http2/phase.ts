/** How far a connection is. */
export type Phase =
  | { readonly kind: 'open' }
  /** GOAWAY was announced; the last one follows once what is on its way has come. */
  | { readonly kind: 'leaving' }
  /** The last GOAWAY was sent: the connection closes with its last stream. */
  | { readonly kind: 'left' }
  /** The last answer has been sent, and the app is asked by PING whether it has read it. */
  | { readonly kind: 'parting' }
  /** Everything has been written; what comes is ignored. */
  | { readonly kind: 'closing' };

export const OPEN: Phase = { kind: 'open' };
export const LEAVING_PHASE: Phase = { kind: 'leaving' };
export const LEFT: Phase = { kind: 'left' };
export const PARTING_PHASE: Phase = { kind: 'parting' };
export const CLOSING: Phase = { kind: 'closing' };
