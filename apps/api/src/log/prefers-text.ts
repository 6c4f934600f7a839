/**
 * Whether a caller would rather have text than JSON, by its Accept header (RFC 9110, section 12.5.1). Whoever has no
 * preference gets JSON.
 */
export function prefersText(accept: string | undefined): boolean {
  const ranges = (accept ?? '*/*').split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const [, quality] =
      parameters.map((parameter) => /^q\s*=\s*([01](?:\.\d{0,3})?)$/.exec(parameter)).find(Boolean) ?? [];
    return { type, quality: Number(quality ?? 1) };
  });
  // The closest range counts, however good a wider one would be.
  const qualityOf = (...names: readonly string[]): number =>
    names.map((name) => ranges.find(({ type }) => type === name)).find((range) => range !== undefined)?.quality ?? 0;
  return qualityOf('text/plain', 'text/*', '*/*') > qualityOf('application/json', 'application/*', '*/*');
}
