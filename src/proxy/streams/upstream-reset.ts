import { SidecarError } from '../../platform/errors.ts';

/** An HTTP/2 upstream has reset the request (RFC 9113 §6.4). */
export class UpstreamReset extends SidecarError<'upstream_protocol_error'> {
  /** As received; an app that speaks HTTP/2 may be told it too. */
  readonly http2Code: number;

  constructor(message: string, http2Code: number) {
    super('upstream_protocol_error', message);
    this.http2Code = http2Code;
  }
}
