/** The certificates of a PEM bundle, each on its own, whole or not; text between them is left out (RFC 7468 §2). */
export function blocksOf(bundle: string): string[] {
  const [, ...begun] = bundle.split(/^-----BEGIN CERTIFICATE-----[ \t]*\r?$/m);
  return begun.map((rest) => {
    const [body = ''] = rest.split(/^-----END CERTIFICATE-----/m);
    const isWhole = body.length < rest.length;
    return `-----BEGIN CERTIFICATE-----${body}${isWhole ? '-----END CERTIFICATE-----\n' : ''}`;
  });
}
