/** A file that a grant needs cannot be used now. The message names the file and may be shown: it holds no content. */
export class UnusableFile extends Error {}
