// What charts draw with: the part of a canvas's pen that can also write SVG.
export interface Pen {
  fillStyle: string | CanvasGradient | CanvasPattern;
  strokeStyle: string | CanvasGradient | CanvasPattern;
  lineWidth: number;
  font: string;
  textAlign: CanvasTextAlign;
  imageSmoothingEnabled: boolean;
  beginPath(): void;
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  setLineDash(lengths: number[]): void;
  stroke(): void;
  fillRect(x: number, y: number, w: number, h: number): void;
  strokeRect(x: number, y: number, w: number, h: number): void;
  measureText(text: string): { width: number };
  fillText(text: string, x: number, y: number): void;
  drawImage(image: HTMLCanvasElement, sx: number, sy: number, sw: number, sh: number, x: number, y: number, w: number, h: number): void;
  clipTo(x: number, y: number, w: number, h: number): void;
  unclip(): void;
}

export function canvasPen(context: CanvasRenderingContext2D): Pen {
  const pen = context as unknown as Pen;
  pen.clipTo = (x, y, w, h) => { context.save(); context.beginPath(); context.rect(x, y, w, h); context.clip(); };
  pen.unclip = () => context.restore();
  return pen;
}

const escaped = (text: string): string => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c] as string);
const short = (value: number): string => String(+value.toFixed(2));

// Writes the strokes as SVG; pixels of calls become images in it.
export class SvgPen implements Pen {
  fillStyle = "";
  strokeStyle = "";
  lineWidth = 1;
  font = "";
  textAlign: CanvasTextAlign = "left";
  imageSmoothingEnabled = false;
  private path = "";
  private dashes = "";
  private clips = 0;
  readonly out: string[] = [];

  beginPath(): void { this.path = ""; }
  moveTo(x: number, y: number): void { this.path += `M${short(x)} ${short(y)}`; }
  lineTo(x: number, y: number): void { this.path += `L${short(x)} ${short(y)}`; }
  setLineDash(lengths: number[]): void { this.dashes = lengths.length ? ` stroke-dasharray="${lengths.join(" ")}"` : ""; }
  stroke(): void { this.out.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${this.dashes}/>`); }
  fillRect(x: number, y: number, w: number, h: number): void { this.out.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="${this.fillStyle}"/>`); }
  strokeRect(x: number, y: number, w: number, h: number): void { this.out.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="none" stroke="${this.strokeStyle}"/>`); }
  measureText(text: string): { width: number } { return { width: 6.4 * text.length }; }
  fillText(text: string, x: number, y: number): void {
    const anchor = this.textAlign === "center" ? "middle" : this.textAlign === "right" ? "end" : "start";
    this.out.push(`<text x="${short(x)}" y="${short(y)}" fill="${this.fillStyle}" text-anchor="${anchor}">${escaped(text)}</text>`);
  }
  drawImage(image: HTMLCanvasElement, sx: number, sy: number, sw: number, sh: number, x: number, y: number, w: number, h: number): void {
    const part = document.createElement("canvas");
    part.width = sw; part.height = sh;
    part.getContext("2d")?.drawImage(image, sx, sy, sw, sh, 0, 0, sw, sh);
    this.out.push(`<image x="${x}" y="${y}" width="${w}" height="${h}" preserveAspectRatio="none" image-rendering="pixelated" href="${part.toDataURL("image/png")}"/>`);
  }
  clipTo(x: number, y: number, w: number, h: number): void {
    this.clips += 1;
    this.out.push(`<svg x="${x}" y="${y}" width="${w}" height="${h}" viewBox="${x} ${y} ${w} ${h}" overflow="hidden">`);
  }
  unclip(): void { this.out.push("</svg>"); }

  document(width: number, height: number, ground: string): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="11"><rect width="100%" height="100%" fill="${ground}"/>${this.out.join("")}</svg>`;
  }
}
