import { type Fields, fieldValues } from './fields.ts';

/** Identifies a request to apps, proxies and logs. */
export const REQUEST_ID_FIELD = 'x-request-id';

/** Ids that logs and answers may quote: of bounded length, with nothing that could end a line or a field. */
const ACCEPTABLE = /^[\w.:=+/@-]{1,128}$/;

/** The id that the app gave its request; undefined where it gave none, several, or one that is not acceptable. */
export function givenRequestId(fields: Fields): string | undefined {
  const [id, ...others] = fieldValues(fields, REQUEST_ID_FIELD);
  return id !== undefined && others.length === 0 && ACCEPTABLE.test(id) ? id : undefined;
}
