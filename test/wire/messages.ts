/** Builders of the plain messages in which a test does not look at every byte itself. */

/** A request with `Host: app.test`, the field lines given, and a Content-Length when there is a body. */
export function request(
  method: string,
  target: string,
  fields: readonly string[] = [],
  body?: string,
): string {
  const length = body === undefined ? [] : [`Content-Length: ${body.length}`];
  return message(`${method} ${target} HTTP/1.1`, ['Host: app.test', ...fields, ...length], body);
}

export function get(target: string, ...fields: string[]): string {
  return request('GET', target, fields);
}

export function post(target: string, body: string, ...fields: string[]): string {
  return request('POST', target, fields, body);
}

/** An answer with a Content-Length. */
export function answer(status: number, body = '', ...fields: string[]): string {
  return message(`HTTP/1.1 ${status} Reason`, [...fields, `Content-Length: ${body.length}`], body);
}

export function ok(body = '', ...fields: string[]): string {
  return answer(200, body, ...fields);
}

/** One chunk of a chunked body (RFC 9112 §7.1). */
export function chunk(data: string): string {
  return `${data.length.toString(16)}\r\n${data}\r\n`;
}

export const LAST_CHUNK = '0\r\n\r\n';

export const CHUNKED = 'Transfer-Encoding: chunked';

/** A start line and field lines as they are, and what follows the empty line. */
export function message(startLine: string, fields: readonly string[], body = ''): string {
  return `${[startLine, ...fields].map((line) => `${line}\r\n`).join('')}\r\n${body}`;
}
